"""`shapelens annotate FILE[::CLASS]`: shapes written into a file as comments, behind the lines that give them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from shapelens.analysis.display.written_shapes import written_shapes
from shapelens.batch import Batch, read
from shapelens.commands import RefusedRequest
from shapelens.commands.fixing import Fixes
from shapelens.commands.profiled import file_and_class, refuse_what_has_no_answer
from shapelens.project_scope import ProjectScope


async def annotate(target: str, python: str | None, *, diff: bool, allow: Sequence[str] = ()) -> int:
    """Write the shapes of a file, or print what would change as a diff. Raises RefusedRequest, batch.Unreadable and batch.Unavailable."""
    path, cls = file_and_class(target)
    text = read(path)
    if path.suffix == ".ipynb":
        raise RefusedRequest(f"{path}: comments are written into Python files only")
    scope = ProjectScope(allow=allow)
    async with Batch(python, root=scope.project_root(path.absolute()), scope=scope) as batch:
        analysed = await batch.analyse(path, text, only=cls)
    refuse_what_has_no_answer(analysed, path, cls)
    functions = {seen.function for seen in analysed.trace.observations if cls is None or seen.function.startswith(f"{cls}.")}
    edits = written_shapes(analysed.module, analysed.trace, functions)
    changes = Fixes()
    changes.change(path, text, list(edits.values()))
    if diff:
        sys.stdout.write(changes.diff({path: str(path)}))
        return 0
    changes.write()
    guessed = [run.target for run in analysed.trace.examples if run.evidence == "inferred" or run.doubtful]
    note = f"; of {', '.join(sorted(set(guessed)))} only a guess is known, which is not written" if guessed else ""
    sys.stdout.write(f"{path}: {len(edits)} {'comment' if len(edits) == 1 else 'comments'} written{note}\n")
    return 0
