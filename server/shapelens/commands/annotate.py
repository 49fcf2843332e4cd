"""`shapelens annotate FILE[::CLASS]`: shapes written into a file, as comments behind lines or as annotations of jaxtyping."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from shapelens.analysis.display.written_annotations import has_annotations, written_annotations
from shapelens.analysis.display.written_shapes import written_shapes
from shapelens.batch import Batch
from shapelens.commands import RefusedRequest
from shapelens.commands.fixing import Fixes
from shapelens.commands.profiled import file_and_class, refuse_what_has_no_answer
from shapelens.project_scope import ProjectScope
from shapelens.source.files import read


async def annotate(target: str, python: str | None, *, style: str | None, diff: bool, allow: Sequence[str] = ()) -> int:
    """Write the shapes of a file, or print what would change as a diff. Raises RefusedRequest, files.Unreadable and batch.Unavailable.

    style: "comments" or "jaxtyping"; None for that of the file.
    """
    path, cls = file_and_class(target)
    text = read(path)
    if path.suffix == ".ipynb":
        raise RefusedRequest(f"{path}: shapes are written into Python files only")
    scope = ProjectScope(allow=allow)
    async with Batch(python, root=scope.project_root(path.absolute()), scope=scope) as batch:
        analysed = await batch.analyse(path, text, only=cls)
    refuse_what_has_no_answer(analysed, path, cls)
    functions = {seen.function for seen in analysed.trace.observations if cls is None or seen.function.startswith(f"{cls}.")}
    if style == "jaxtyping" or (style is None and has_annotations(text)):
        written = written_annotations(analysed.module, analysed.trace, functions)
        if written.refused:
            raise RefusedRequest(f"{path}: annotations may change what the code does: {written.refused}")
        edits, count, what = written.edits, written.count, "annotation"
    else:
        edits = list(written_shapes(analysed.module, analysed.trace, functions).values())
        count, what = len(edits), "comment"
    changes = Fixes()
    changes.change(path, text, edits)
    if diff:
        sys.stdout.write(changes.diff({path: str(path)}))
        return 0
    changes.write()
    guessed = [run.target for run in analysed.trace.examples if run.evidence == "inferred" or run.doubtful]
    note = f"; of {', '.join(sorted(set(guessed)))} only a guess is known, which is not written" if guessed else ""
    sys.stdout.write(f"{path}: {count} {what if count == 1 else f'{what}s'} written{note}\n")
    return 0
