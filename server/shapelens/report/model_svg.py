"""Draws a model: modules as nested boxes in the order of their calls, joined by the tensors that flow between them.

Boxes stand below each other, as each step is given only what earlier ones made: an arrow leads from a box to the next one, a line at the
right past those between. The view in an editor (view/layout.js) lays the same picture out, and can fold and unfold it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

from shapelens.analysis.structure.graph import Edge, Graph, graph
from shapelens.analysis.structure.tree import walk
from shapelens.report.model_document import ModelView

MOST_BOXES = 100
GAP, PAD, LANE, LINE = 30, 12, 14, 16  # between boxes, inside of boxes, between lines at the right, of a title; in pixels
LETTER = 7  # the width of a letter, about

_STYLE = (
    "text{font:12px sans-serif;fill:#1f1f1f}.shape{font:11px monospace;fill:#5c5c5c}rect{fill:#f3f3f3;stroke:#5c5c5c}.open{fill:none;"
    "stroke:#c0c0c0}.failed{stroke:#b01011;stroke-width:2}.edge{stroke:#5c5c5c;fill:none}"
)


@dataclass
class _Box:
    """A step, or several calls of modules that are alike. `inside` is empty for what is folded."""

    number: int
    title: str
    shape: str
    is_module: bool
    failed: bool
    members: list[int]
    inside: list[_Box] = field(default_factory=list)
    width: float = 0
    height: float = 0
    arcs: list[tuple[int, int, int]] = field(default_factory=list)  # from, to, lane: places among those inside
    straight: dict[int, str] = field(default_factory=dict)  # the shape on the arrow to each place


def svg(view: ModelView) -> str:
    """The picture. Strings of the user's code are text in it."""
    found = _with_result(graph(view.profile, view.findings))
    whole = _Box(-1, "", "", True, False, [])
    _fill(view, found, whole)
    _place(found, whole)
    width, height = whole.width + 2 * PAD, whole.height
    drawn = "".join(_drawn(whole, PAD, 0))
    arrow = (
        '<marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z"/></marker>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">'
        f"<title>{escape(view.class_name)}</title><defs>{arrow}</defs><style>{_STYLE}</style>{drawn}</svg>\n"
    )


def _with_result(found: Graph) -> Graph:
    """Returns the graph with an arrow out of its last step, whose result the model gives. The arrow leads to no node."""
    if not found.nodes or any(edge.source == found.nodes[-1].number for edge in found.edges):
        return found
    last = found.nodes[-1]
    return Graph(found.nodes, [*found.edges, Edge(last.number, len(found.nodes), last.shape, last.sizes)])


def _fill(view: ModelView, found: Graph, whole: _Box) -> None:
    """Unfold what there is room for, level by level."""
    signatures = {row.path: row.signature for _, row in walk(view.rows)}
    children: dict[int, list[int]] = {}
    for node in found.nodes:
        children.setdefault(-1 if node.parent is None else node.parent, []).append(node.number)
    level, count = [whole], 0
    while level:
        wanted = [(box, list(_boxes(found, children.get(box.number, []), signatures))) for box in level if len(box.members) < 2]
        level = []
        for box, inside in wanted:
            if count and count + len(inside) > MOST_BOXES:
                continue
            count += len(inside)
            box.inside = inside
            level += [each for each in inside if each.is_module]


def _boxes(found: Graph, numbers: Sequence[int], signatures: dict[str, int]) -> Iterator[_Box]:
    place = 0
    while place < len(numbers):
        node, end = found.nodes[numbers[place]], place + 1
        known = signatures.get(node.path)
        while (
            end < len(numbers)
            and node.kind == "module"
            and known is not None
            and signatures.get(found.nodes[numbers[end]].path) == known
            and found.nodes[numbers[end]].kind == "module"
        ):
            end += 1
        members = list(numbers[place:end])
        name = f"{node.path.rpartition('.')[2]} {node.label}".strip() + (f" ×{len(members)}" if len(members) > 1 else "")
        failed = any(found.nodes[number].failure is not None for number in members)
        yield _Box(node.number, name, found.nodes[members[-1]].shape, node.kind == "module", failed, members)
        place = end


def _place(found: Graph, box: _Box) -> None:
    """Say how large a box is, with all that is in it, and which of its boxes are joined."""
    if not box.inside:
        box.width, box.height = LETTER * len(box.title) + 2 * PAD, 28 if box.is_module else 22
        return
    places: dict[int, int] = {}
    for place, inner in enumerate(box.inside):
        for number in _steps_of(found, inner):
            places[number] = place
    for inner in box.inside:
        _place(found, inner)
    own = set(_steps_of(found, box)) if box.number >= 0 else set(range(len(found.nodes)))
    joined: dict[tuple[int, int], Edge] = {}
    for edge in found.edges:
        start = places.get(edge.source, -1 if edge.target in own else -2)
        end = places.get(edge.target, len(box.inside) if edge.source in own else -2)
        if -2 < start < end and end >= 0:
            joined.setdefault((start, end), edge)
    lanes: list[list[tuple[int, int]]] = []
    for (start, end), edge in sorted(joined.items(), key=lambda item: item[0][1] - item[0][0]):
        if end == start + 1:
            box.straight[end] = edge.shape
            continue
        lane = next((at for at, taken in enumerate(lanes) if all(to <= start or since >= end for since, to in taken)), len(lanes))
        if lane == len(lanes):
            lanes.append([])
        lanes[lane].append((start, end))
        box.arcs.append((start, end, lane))
    labels = [2 * (LETTER * len(shape) + 8) for shape in box.straight.values()]
    inner_width = max([inner.width for inner in box.inside] + labels + [60])
    box.width = max(inner_width + (LANE * len(lanes) + PAD if lanes else 0) + 2 * PAD, LETTER * len(box.title) + 2 * PAD)
    box.height = LINE + GAP + sum(inner.height + GAP for inner in box.inside)


def _steps_of(found: Graph, box: _Box) -> Iterator[int]:
    """The steps of a box, those inside of its calls included."""
    for number in box.members:
        yield number
        for node in found.nodes[number + 1 :]:
            if node.parent is None or node.parent < number:
                break
            yield node.number


def _drawn(box: _Box, x: float, y: float) -> Iterator[str]:
    if box.number >= 0:
        shape = f"<title>{escape(box.title)}\n{escape(box.shape)}</title>"
        kind = "failed" if box.failed else "open" if box.inside else ""
        corner = 4 if box.is_module else 11
        yield f'<g>{shape}<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="{corner}"/>'
        if box.inside:
            yield f'<text x="{x + PAD:.1f}" y="{y + LINE:.1f}">{escape(box.title)}</text></g>'
        else:
            middle = x + box.width / 2
            yield f'<text x="{middle:.1f}" y="{y + box.height / 2 + 4:.1f}" text-anchor="middle">{escape(box.title)}</text></g>'
    if not box.inside:
        return
    lanes = 1 + max((lane for _, _, lane in box.arcs), default=-1)
    room = box.width - 2 * PAD - (LANE * lanes + PAD if lanes else 0)
    middle, top = x + PAD + room / 2, y + LINE
    tops, bottoms, at = [], [], top + GAP
    for inner in box.inside:
        tops.append(at)
        bottoms.append(at + inner.height)
        yield from _drawn(inner, middle - inner.width / 2, at)
        at += inner.height + GAP
    tops.append(at)
    for place, shape in box.straight.items():
        start = bottoms[place - 1] if place else top
        ends = f'x1="{middle:.1f}" x2="{middle:.1f}" y1="{start:.1f}" y2="{tops[place] - 2:.1f}"'
        yield f'<line class="edge" {ends} marker-end="url(#arrow)"/>'
        yield f'<text class="shape" x="{middle + 6:.1f}" y="{(start + tops[place]) / 2 + 4:.1f}">{escape(shape)}</text>'
    for first, last, lane in box.arcs:
        right = x + PAD + room + PAD + LANE * lane
        sides = [middle + box.inside[place].width / 2 if 0 <= place < len(box.inside) else middle for place in (first, last)]
        since = bottoms[first] - 8 if first >= 0 else top + 6
        until = tops[last] + 8 if last < len(box.inside) else at - 6
        path = f"M{sides[0]:.1f},{since:.1f} H{right:.1f} V{until:.1f} H{sides[1] + 3:.1f}"
        yield f'<path class="edge" d="{path}" marker-end="url(#arrow)"/>'
