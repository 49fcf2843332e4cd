"""Top-level statements are found where Python finds them, in text that parses and in text that does not."""

from __future__ import annotations

import ast

import pytest

from shapelens.source.scanner import chunks, depth_at_end, logical_lines

ODD_TEXTS = {
    "triple quotes": "x = \"\"\"\nclass A:\n#'''\"\"\"\ny = '''a\\''''\nz = r\"\\\"\"\n",
    "prefixes": "a = rb'\\''\nb = f'{x!r:>{w}}'\nc = Rb\"'\"\nd = u'#('\n",
    "f-string with quotes in its specification": 'a = f"{x:\'>10}"\nb = f"{x:{y}}(" f"}}{{"\nc = 1\n',
    "f-string over lines": 'a = f"""{\n    f(x)\n}\nclass B: """\nb = 1\n',
    "nested f-strings": "a = f\"{f'{x}('}\"\nb = rf'{d[\"[\"]}'\nc = 2\n",
    "clauses": "if a:\n    pass\n# c\nelif b:\n    pass\nelse:\n    pass\ntry:\n    a\nexcept E:\n    b\nelse: c\nfinally: d\nelse_ = 1\n",
    "loops with else": "for a in b:\n    c\nelse:\n    d\nwhile a: b\nelse: c\n",
    "decorators": "@a\n# between\n@b(\n    1,\n)\nclass C:\n    @d\n    def e(): pass\n\n@a\nasync def f(): pass\n",
    "continuation": "a = 1 + \\\n2\nb = \\\n\\\n3\nassert a, \\\n'b'\n",
    "brackets at column 0": "a = [\n1,\n# ]\n2\n]\nb = {\n'x': (\n)}\nfor_ = (x for x in y\nif x)\n",
    "semicolons": "a = 1; b = 2\nc = 3;\n",
    "tabs and form feeds": "if a:\n\tb\n\x0cclass C:\n\x0c  pass\n  \x0cd = 1\n",
    "CRLF": "if a:\r\n    b\r\nc = '''\r\nd\r\n'''\r\ne = 1 + \\\r\n2\r\n",
    "lone CR": "if a:\r    b\rc = '''\rd\r'''\re = 1\r",
    "no line end": "a = 1\nif b:\n    c  # d",
    "comments around": "# a\n\n  # b\na = 1  # c\n    # d\n# e",
    "match": "match x:\n    case {'a': 1, **r}: pass\n    case [*_]:\n        pass\nmatch = 1\nmatch[1:2]\n",
    "walrus and lambda": "(a := 1)\nb = lambda: (c := 2)\nif (d := 3): pass\n",
    "wide characters": "é = '😀('\n𝐱 = {'→': 1}\n",
    "empty": "",
    "only comments": "# a\n\n# b",
    "no-break space in a string": "a = '\xa0'\nb = 1\n",
}


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS.keys())
def test_chunks_are_the_statements_of_ast(text: str) -> None:
    lines_of_ast = []
    for statement in ast.parse(text).body:
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(item.lineno for item in decorators)])
        if not lines_of_ast or lines_of_ast[-1][0] != first:  # Statements behind a semicolon share a line.
            lines_of_ast.append((first, statement.end_lineno))
    found = []
    for chunk in chunks(text):
        before = text[: chunk.start]
        first = before.count("\n") + before.replace("\r\n", "").count("\r") + 1
        ends = text[chunk.start : chunk.end]
        last = first + ends.count("\n") + ends.replace("\r\n", "").count("\r") - (1 if ends.endswith(("\n", "\r")) else 0)
        found.append((first, last))
        assert all(line.closed for line in chunk.lines)
    assert found == lines_of_ast


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("a = (1,\nclass B:\n    c = f(\n    def d(): pass\n", ["a = (1,", "class B:"]),
        ("a = [\n\nimport b\n", ["a = [", "import b"]),
        ("a = 'open\nb = 1\n", ["a = 'open", "b = 1"]),
        ('a = f"{x\nclass B: pass\n', ['a = f"{x', "class B: pass"]),
        ("a = )\nb = 1\n", ["a = )", "b = 1"]),
        ("    indented = 1\nb = 1\n", ["    indented = 1", "b = 1"]),
    ],
)
def test_what_is_not_closed_ends_at_the_next_keyword_that_brackets_cannot_hold(text: str, starts: list[str]) -> None:
    found = list(chunks(text))
    assert [text[chunk.start :].splitlines()[0] for chunk in found] == starts


def test_a_logical_line_ends_before_its_comment() -> None:
    text = "  a = f(1,  # one\n    2)  # two\nb = '#'\n"
    comments: list[tuple[int, int]] = []
    lines = list(logical_lines(text, 0, comments))
    assert [text[line.start : line.end] for line in lines] == ["a = f(1,  # one\n    2)", "b = '#'"]
    assert [text[start:end] for start, end in comments] == ["# one", "# two"]


@pytest.mark.parametrize(("text", "depth"), [("f(", 1), ("f('(')", 0), ("f([{", 3), ('f("""(', 1), ("a)", -1), ("", 0)])
def test_open_brackets_are_counted_outside_of_strings(text: str, depth: int) -> None:
    assert depth_at_end(text) == depth
