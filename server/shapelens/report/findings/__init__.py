"""The findings of many files in the formats that `check` writes, one module each. A format gets the `Report` and returns its text; it
reads no file and prints nothing."""
