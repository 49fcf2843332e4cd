"""The Python of documentation: which blocks are code, on which lines, and which have to do with a file."""

from __future__ import annotations

from shapelens.python_sources import about, as_python

README = """\
# Net

    indented text is no code

```python
from net import Net
net = Net()
```
Then:
```py
net(1)
```
  ~~~ {.python}
  from other import Other
  Other()
  ~~~
````python
broken = Net(
````
```
$ pip install net
```
```yaml
model: Net
```
"""


def lines(text: str) -> dict[int, str]:
    """What stands on the lines that are not empty, by number."""
    return {number: line for number, line in enumerate(text.splitlines(), 1) if line and line != "# %%"}


def test_blocks_of_markdown_stand_on_their_lines() -> None:
    python = as_python("README.md", README)
    found = lines(python)
    assert found == {
        6: "from net import Net",
        7: "net = Net()",
        11: "net(1)",
        14: "from other import Other",
        15: "Other()",
        18: "broken = __shapelens_unknown__",
    }
    assert python.count("\n") == README.count("\n")


def test_an_example_goes_on_in_blocks_without_imports() -> None:
    python = as_python("README.md", README)
    assert lines(about("README.md", python, ["Net"])) == {6: "from net import Net", 7: "net = Net()", 11: "net(1)"}
    assert [*lines(about("README.md", python, ["Other"]))] == [14, 15, 18]
    assert lines(about("README.md", python, ["Another"])) == {}
    assert about("train.py", python, ["Another"]) == python


def test_blocks_of_restructured_text_and_their_prompts() -> None:
    guide = """\
.. code-block:: python
   :linenos:

   from net import Net

.. note::
   This is prose, and
   so::

     >>> net = Net()
     >>> for each in net:
     ...     each(2)
     [3]
"""
    assert lines(as_python("guide.rst", guide)) == {4: "from net import Net", 10: "net = Net()", 11: "for each in net:", 12: "    each(2)"}
