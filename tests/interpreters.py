"""The interpreters that tests run."""

from __future__ import annotations

import os
import sys

# Runs the models: this one, unless the tests are run with a worker of other versions (see matrix.py).
TORCH_PYTHON = os.environ.get("SHAPELENS_TEST_PYTHON", sys.executable)
