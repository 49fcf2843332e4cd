"""A model as one HTML file that is the same view as in an editor, and opens from disk without a request."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib import resources

from shapelens.report.model_document import ModelView, model_document

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src '{style_hash}'; script-src '{script_hash}'; img-src data:">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="root"></div>
<script id="model" type="application/json">{model}</script>
<script>{script}</script>
</body>
</html>
"""


def html(view: ModelView) -> str:
    """The page. Paths of this machine stay out of it: places name files alone."""
    # `</script>` and the like in a string would end the element.
    model = json.dumps(_portable(model_document(view)), ensure_ascii=False).replace("<", "\\u003c")
    style = _part("view.css")
    script = "\n".join(map(_part, json.loads(_part("scripts.json"))))
    return _PAGE.format(
        title=escape(view.class_name), style=style, script=script, model=model, style_hash=_hash(style), script_hash=_hash(script)
    )


def _part(name: str) -> str:
    return resources.files(__package__).joinpath("view", name).read_text(encoding="utf-8")


def _portable(value: object) -> object:
    if isinstance(value, dict):
        return {key: str(item).replace("\\", "/").rpartition("/")[2] if key == "file" else _portable(item) for key, item in value.items()}
    return [_portable(item) for item in value] if isinstance(value, list) else value


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
