// The picture of a model, laid out: modules as nested boxes in the order of their calls, joined by the tensors that flow between them.
'use strict';

const MOST_BOXES = 120;
const LINE = 16;
const GAP = 30;
const PAD = 12;
const LANE = 14;

const MOST_INSIDE = 60; // boxes in one container: more are grouped
const PIECE = 30;

/** Items of each container: nodes, or groups of repeated calls, or, where there are too many, of those that follow each other. */
function hierarchy() {
    const { nodes } = state.model.graph;
    const signatures = new Map();
    const learn = (row) => { signatures.set(row.path, row.signature); row.rows.forEach(learn); };
    state.model.tree.forEach(learn);
    const inside = new Map();
    const items = new Map();
    for (const node of nodes) {
        const parent = node.parent ?? -1;
        if (!inside.has(parent)) inside.set(parent, []);
        inside.get(parent).push(node.id);
        items.set(String(node.id), { id: String(node.id), node, parent: String(parent), title: titleOf(node) });
    }
    const children = new Map();
    const group = (id, title, members) => {
        const first = items.get(members[0]);
        items.set(id, { id, node: first.node, parent: first.parent, title });
        for (const member of members) items.get(member).parent = id;
        children.set(id, members);
        return id;
    };
    for (const [parent, list] of inside) {
        let grouped = [];
        for (let place = 0; place < list.length; ) {
            const node = nodes[list[place]];
            let end = place + 1;
            const alike = (other) => node.kind === 'module' && other.kind === 'module' && node.path !== other.path && signatures.has(node.path) && signatures.get(node.path) === signatures.get(other.path) && node.shape === other.shape;
            while (end < list.length && alike(nodes[list[end]])) end += 1;
            const members = list.slice(place, end).map(String);
            if (members.length > 2) grouped.push(group(`g${node.id}`, `${titleOf(node)} ×${members.length}`, members));
            else grouped.push(...members);
            place = end;
        }
        for (let level = 0; grouped.length > MOST_INSIDE; level += 1) {
            const pieces = [];
            for (let place = 0; place < grouped.length; place += PIECE) {
                const members = grouped.slice(place, place + PIECE);
                const [first, last] = [items.get(members[0]), items.get(members.at(-1))];
                const title = level ? `${first.title.split(' … ')[0]} … ${last.title.split(' … ').at(-1)}` : `${first.title} … ${last.title}`;
                pieces.push(members.length > 1 ? group(`p${level}-${first.node.id}`, title, members) : members[0]);
            }
            grouped = pieces;
        }
        children.set(String(parent), grouped);
    }
    return { items, children };
}
const titleOf = (node) => (node.kind === 'module' && node.path ? `${node.path.split('.').at(-1)} ${node.label}` : node.label);

/** Of the model that is shown: what stands in what, and what joins it. It is the same however much is unfolded. */
let structureOf;
function structure() {
    const { graph, tree, path } = state.model;
    if (structureOf?.graph === graph && structureOf.tree === tree && structureOf.path === path) return structureOf;
    const { items, children } = hierarchy();
    // A class that is a part of another one is drawn without what is around it.
    const part = path ? graph.nodes.find((node) => node.kind === 'module' && node.path === path) : undefined;
    const root = part && String(part.id);
    const chains = new Map(); // of each node, the items around it, outermost first
    const chain = (id) => {
        if (!chains.has(id)) { const { parent } = items.get(id); chains.set(id, [...(parent === '-1' ? [] : chain(parent)), id]); }
        return chains.get(id);
    };
    // Of each edge, the two items of one container that it joins; "in" and "out" for those that come from outside of the container.
    const joins = new Map();
    const known = new Set();
    const link = (container, from, to, edge) => {
        const key = `${container}|${from}|${to}`;
        if (known.has(key)) return;
        known.add(key);
        if (!joins.has(container)) joins.set(container, []);
        joins.get(container).push({ from, to, edge });
    };
    for (const edge of graph.edges) {
        const one = chain(String(edge.from));
        const other = chain(String(edge.to));
        if (root && other.includes(root) && !one.includes(root)) link('-1', 'in', root, edge);
        let common = 0;
        while (common < one.length && common < other.length && one[common] === other[common]) common += 1;
        if (common === one.length || common === other.length) continue;
        link(common ? one[common - 1] : '-1', one[common], other[common], edge);
        for (let at = common; at + 1 < one.length; at += 1) link(one[at], one[at + 1], 'out', edge);
        for (let at = common; at + 1 < other.length; at += 1) link(other[at], 'in', other[at + 1], edge);
    }
    // What the last step gave is what the model gives: an arrow leads out of it.
    const last = graph.nodes.at(-1);
    if (root) link('-1', root, 'out', { from: part.id });
    else if (last && !graph.edges.some((edge) => edge.from === last.id)) {
        chain(String(last.id)).forEach((id, at, way) => link(at ? way[at - 1] : '-1', id, 'out', { from: items.get(id).node.id }));
    }
    const broken = new Set(graph.nodes.filter((node) => node.failure).flatMap((node) => chain(String(node.id)))); // what fails, and what it is in
    structureOf = { graph, tree, path, items, children, chain, joins, broken, root, top: root ? [root] : children.get('-1') ?? [] };
    return structureOf;
}

const isUnfolded = (id) => {
    const { items, children, root } = structure();
    return children.has(id) && (state.blocks.get(id) ?? (root ? id === root : items.get(id).parent === '-1' && id === String(items.get(id).node.id)));
};

function shownBoxes() {
    const { children, top } = structure();
    let count = 0;
    const add = (ids) => { for (const id of ids) { count += 1; if (isUnfolded(id)) add(children.get(id)); } };
    add(top);
    return count;
}

/** Fold what was unfolded first, until there is room for the others; what `kept` is in stays. The titles of what was folded. */
function foldOthers(kept = '') {
    const { items, chain } = structure();
    const folded = [];
    for (const [id, open] of [...state.blocks]) {
        if (shownBoxes() <= MOST_BOXES) break;
        if (!open || (kept && chain(kept).includes(id)) || !items.has(id)) continue;
        state.blocks.delete(id);
        state.blocks.set(id, false);
        folded.push(items.get(id).title);
    }
    return folded;
}

function toggleBox(id) {
    const before = new Map(state.blocks);
    const open = !isUnfolded(id);
    state.blocks.delete(id);
    state.blocks.set(id, open);
    const folded = open ? foldOthers(id) : [];
    const most = `at most ${MOST_BOXES} boxes are drawn at a time`;
    let note = folded.length ? `Folded: ${folded.join(', ')}, as ${most}.` : '';
    if (shownBoxes() > MOST_BOXES) {
        state.blocks = before;
        note = `There is no room to unfold it: ${most}.`;
    }
    const was = drawnPicture?.places.get(id);
    renderBlocks(note);
    // It stays where it is on the screen.
    const is = drawnPicture.places.get(id);
    if (was && is && state.box) {
        state.box = { ...state.box, x: state.box.x + is.x - was.x, y: state.box.y + is.y - was.y };
        show();
    }
    keep();
}

const shape = (node) => (state.dims === 'names' ? node.shape : node.sizes);

/** What a container has inside, below each other: its boxes with their places, and what joins them. */
function laidOut(ids, container) {
    const { nodes } = state.model.graph;
    const parts = ids.map(measured);
    const at = new Map(ids.map((id, place) => [id, place]));
    const arcs = [];
    const straight = [];
    for (const { from: source, to: target, edge } of structure().joins.get(container) ?? []) {
        const from = source === 'in' ? -1 : at.get(source);
        const to = target === 'out' ? ids.length : at.get(target);
        if (from === undefined || to === undefined || to <= from) continue;
        (to === from + 1 ? straight : arcs).push({ from, to, text: shape(nodes[edge.from]) });
    }
    const labels = straight.map(({ text }) => 2 * (7 * text.length + 8));
    const width = Math.max(60, ...parts.map((part) => part.width), ...labels);
    const middle = width / 2;
    let height = GAP;
    for (const part of parts) {
        part.x = middle - part.width / 2;
        part.y = height;
        height += part.height + GAP;
    }
    arcs.sort((one, other) => one.to - one.from - (other.to - other.from));
    const lanes = [];
    for (const arc of arcs) {
        let lane = lanes.findIndex((taken) => taken.every((other) => other.to <= arc.from || other.from >= arc.to));
        if (lane < 0) lane = lanes.push([]) - 1;
        lanes[lane].push(arc);
        arc.lane = lane;
    }
    const bottomOf = (place) => (place < 0 ? 0 : parts[place].y + parts[place].height);
    const topOf = (place) => (place >= ids.length ? height : parts[place].y);
    const rightOf = (place) => (place < 0 || place >= ids.length ? middle : middle + parts[place].width / 2);
    const joins = straight.flatMap(({ from, to, text }) => [
        { name: 'line', attributes: { class: 'edge', x1: middle, x2: middle, y1: bottomOf(from), y2: topOf(to) - 2, 'marker-end': 'url(#arrow)' } },
        { name: 'text', attributes: { class: 'label', x: middle + 6, y: (bottomOf(from) + topOf(to)) / 2 + 4 }, text },
    ]);
    for (const { from, to, lane, text } of arcs) {
        const x = width + PAD + LANE * lane;
        const y1 = from < 0 ? 6 : bottomOf(from) - 8;
        const y2 = to >= ids.length ? height - 6 : topOf(to) + 8;
        joins.push({ name: 'path', attributes: { class: 'edge', d: `M${rightOf(from)},${y1} H${x} V${y2} H${rightOf(to) + 3}`, 'marker-end': 'url(#arrow)' }, title: text });
    }
    return { width: width + (lanes.length ? LANE * lanes.length + PAD : 0), height, parts, joins };
}

/** A box: how large it is, what is said of it, and what it has inside, if that is shown. */
function measured(id) {
    const { items, children, broken } = structure();
    const { node, title } = items.get(id);
    const unfolds = children.has(id);
    const open = isUnfolded(id);
    const own = id === String(node.id) ? node.failure : undefined;
    const failed = own || (!open && broken.has(id));
    const box = {
        class: `box ${node.kind}${failed ? ' failed' : ''}${open ? ' open' : ''}`, tabindex: 0, role: unfolds ? 'button' : 'img', 'data-id': id,
        'aria-label': `${title}, ${shape(node)}${own ? `, ${own.message}` : failed ? ', something inside of it fails' : ''}`, 'aria-expanded': unfolds ? String(open) : undefined,
    };
    const hover = [title, shape(node), own?.message, unfolds ? 'click: unfold or fold' : 'click: go to the line'].filter(Boolean).join('\n');
    const words = 7 * title.length;
    if (open) {
        const inside = laidOut(children.get(id), id);
        const width = Math.max(inside.width + 2 * PAD, words + 2 * PAD);
        const height = inside.height + LINE + 4;
        return { id, title, box, hover, width, height, rect: { x: 0, y: 0, width, height, rx: 4 }, text: { x: PAD, y: LINE, 'text-anchor': undefined }, inside, insideAt: { x: (width - inside.width) / 2, y: LINE + 4 } };
    }
    let [width, height] = [words + 24, node.kind === 'module' ? 28 : 22];
    const picture = node.dims[0];
    const scaled = state.scaled && picture?.length === 4 && picture.every(Boolean);
    if (scaled) [width, height] = [Math.max(14, Math.min(260, picture[3] * 1.2)), Math.max(10, Math.min(90, 8 * Math.log2(picture[1] + 1)))];
    // A name that the box has no room for stands beside it; the space is on both sides, so that boxes stay below each other.
    const beside = scaled && (width < words + 8 || height < LINE) ? words + 8 : 0;
    const text = { x: beside ? beside + width + 6 : width / 2, y: height / 2 + 4, 'text-anchor': beside ? undefined : 'middle' };
    return { id, title, box, hover, width: width + 2 * beside, height, rect: { x: beside, y: 0, width, height, rx: node.kind === 'module' ? 4 : 11 }, text };
}
