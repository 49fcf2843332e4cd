// The picture, drawn: its boxes and arrows, moving about in it, and saving it.
'use strict';

/** What is drawn: the picture, what it has inside, and where each box stands in it. */
let drawnPicture;

function picturePlace() {
    drawnPicture = undefined;
    return element('div', { id: 'blocks' });
}

const layer = () => {
    const joins = element('svg:g');
    return { group: element('svg:g', {}, joins), parts: new Map(), joins };
};

/** Draw what a container has inside. The elements of boxes that stay are moved, not made anew. */
function drawInside(drawn, { parts, joins }, places, x, y) {
    const wanted = new Set(parts.map(({ id }) => id));
    for (const [id, part] of drawn.parts) {
        if (wanted.has(id)) continue;
        part.group.remove();
        drawn.parts.delete(id);
    }
    let next = drawn.group.firstChild;
    for (const part of parts) {
        if (!drawn.parts.has(part.id)) drawn.parts.set(part.id, newBox());
        const box = drawn.parts.get(part.id);
        drawBox(box, part, places, x + part.x, y + part.y);
        if (box.group === next) next = next.nextSibling;
        else drawn.group.insertBefore(box.group, next);
    }
    const before = [...drawn.joins.children];
    joins.forEach(({ name, attributes, text, title }, place) => {
        let join = before[place];
        if (join?.tagName !== name) {
            const made = element(`svg:${name}`, {}, title === undefined ? '' : element('svg:title'));
            if (join) join.replaceWith(made);
            else drawn.joins.append(made);
            join = made;
        }
        change(join, attributes);
        if (name !== 'line') say(title === undefined ? join : join.firstChild, title ?? text);
    });
    before.slice(joins.length).forEach((join) => join.remove());
}

function newBox() {
    const [title, rect, text] = [element('svg:title'), element('svg:rect'), element('svg:text', { class: 'title' })];
    const box = element('svg:g', {}, title, rect, text);
    return { group: element('svg:g', {}, box), box, title, rect, text, inside: undefined };
}

function drawBox(drawn, part, places, x, y) {
    places.set(part.id, { x: x + part.width / 2, y });
    change(drawn.group, { transform: `translate(${part.x},${part.y})` });
    change(drawn.box, part.box);
    change(drawn.rect, part.rect);
    change(drawn.text, part.text);
    say(drawn.title, part.hover);
    say(drawn.text, part.title);
    if (!part.inside) {
        drawn.inside?.group.remove();
        drawn.inside = undefined;
        return;
    }
    if (!drawn.inside) {
        drawn.inside = layer();
        drawn.group.append(drawn.inside.group);
    }
    change(drawn.inside.group, { transform: `translate(${part.insideAt.x},${part.insideAt.y})` });
    drawInside(drawn.inside, part.inside, places, x + part.insideAt.x, y + part.insideAt.y);
}

function onBox(event) {
    const id = event.target.closest('[data-id]')?.dataset.id;
    if (id === undefined) return;
    if (event.type === 'keydown') {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
    }
    const { items, children } = structure();
    if (children.has(id)) toggleBox(id);
    else reveal(items.get(id).node.call);
}

function newPicture() {
    const whole = layer();
    const arrow = element('svg:marker', { id: 'arrow', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: 'auto-start-reverse' }, element('svg:path', { class: 'head', d: 'M0,0 L8,4 L0,8 z' }));
    const svg = element('svg:svg', { role: 'group', tabindex: 0, onkeydown: onPan, onwheel: onWheel, onpointerdown: onDrag, onclick: onBox }, element('svg:defs', {}, arrow), whole.group);
    svg.addEventListener('keydown', onBox);
    whole.group.setAttribute('transform', `translate(${PAD},0)`);
    const notes = element('div');
    document.getElementById('blocks').replaceChildren(notes, svg);
    return { svg, whole, notes, noted: '', places: new Map() };
}

function renderBlocks(note = '') {
    const { graph, complete, class: name } = state.model;
    if (!complete && !graph.nodes.length) {
        drawnPicture = undefined;
        document.getElementById('blocks').replaceChildren(element('p', { class: 'quiet', role: 'status' }, 'The picture is being drawn…'));
        return;
    }
    foldOthers();
    const { top } = structure();
    const layout = laidOut(top, '-1');
    drawnPicture ??= newPicture();
    const { svg, whole, notes } = drawnPicture;
    drawnPicture.places = new Map();
    drawInside(whole, layout, drawnPicture.places, 0, 0);
    change(svg, { 'aria-label': `Blocks of ${name}`, 'data-width': layout.width + 2 * PAD, 'data-height': layout.height });
    const failures = [...new Map(graph.nodes.filter((node) => node.failure).map(({ failure }) => [failure.message, failure])).values()];
    const noted = JSON.stringify([note, failures]);
    if (noted !== drawnPicture.noted) {
        drawnPicture.noted = noted;
        notes.replaceChildren(note ? element('p', { class: 'quiet', role: 'status' }, note) : '', ...failures.map((failure) => element('p', { class: 'message' }, whatIsWrong(failure))));
    }
    if (!state.box) fit();
    else show();
}
const picture = () => document.querySelector('#blocks svg');
function fit() {
    const svg = picture();
    if (!svg) return;
    const [width, height] = [Number(svg.dataset.width), Number(svg.dataset.height)];
    // As wide as it is, from the top: a model is longer than a screen.
    const room = svg.getBoundingClientRect();
    const scale = Math.max(1, width / Math.max(1, room.width));
    state.box = { x: Math.min(0, (width - room.width * scale) / 2), y: 0, width: room.width * scale, height: Math.min(room.height * scale, Math.max(height, room.height * scale)) };
    show();
}
function show() {
    const { x, y, width, height } = state.box;
    picture()?.setAttribute('viewBox', `${x} ${y} ${width} ${height}`);
}
function zoom(factor, cx = 0.5, cy = 0.5) {
    const { box } = state;
    if (!box) return;
    state.box = { x: box.x + box.width * cx * (1 - factor), y: box.y + box.height * cy * (1 - factor), width: box.width * factor, height: box.height * factor };
    show();
}
function onWheel(event) {
    event.preventDefault();
    const room = picture().getBoundingClientRect();
    if (event.ctrlKey || event.metaKey) zoom(event.deltaY > 0 ? 1.15 : 0.87, (event.clientX - room.x) / room.width, (event.clientY - room.y) / room.height);
    else { state.box.y += (event.deltaY * state.box.height) / room.height; state.box.x += (event.deltaX * state.box.width) / room.width; show(); }
}
function onDrag(event) {
    if (event.target !== picture()) return;
    const room = picture().getBoundingClientRect();
    const begin = { ...state.box };
    const move = (to) => { state.box = { ...begin, x: begin.x - ((to.clientX - event.clientX) * begin.width) / room.width, y: begin.y - ((to.clientY - event.clientY) * begin.height) / room.height }; show(); };
    window.addEventListener('pointermove', move);
    window.addEventListener('pointerup', () => window.removeEventListener('pointermove', move), { once: true });
}
function onPan(event) {
    if (event.target !== picture()) return;
    const step = { ArrowUp: [0, -0.1], ArrowDown: [0, 0.1], ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0] }[event.key];
    if (step) { state.box.x += step[0] * state.box.width; state.box.y += step[1] * state.box.height; show(); event.preventDefault(); }
    else if (event.key === '+') zoom(0.8);
    else if (event.key === '-') zoom(1.25);
    else if (event.key === '0') fit();
}

/** The picture as a file of its own, with the colours that it has now. */
function svgText() {
    const svg = picture().cloneNode(true);
    svg.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
    svg.setAttribute('viewBox', `0 0 ${svg.dataset.width} ${svg.dataset.height}`);
    svg.setAttribute('width', svg.dataset.width);
    svg.setAttribute('height', svg.dataset.height);
    const copies = svg.querySelectorAll('rect, text, line, path');
    picture().querySelectorAll('rect, text, line, path').forEach((original, place) => {
        const style = getComputedStyle(original);
        for (const name of ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'font-family', 'font-size']) copies[place].setAttribute(name, style.getPropertyValue(name));
    });
    return new XMLSerializer().serializeToString(svg);
}

const LARGEST_PNG = 8192; // pixels a side

/** The picture as a PNG, in a data URL: twice its size, for screens with fine pixels. */
async function png() {
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText())}`;
    await image.decode();
    const scale = Math.min(2, LARGEST_PNG / image.width, LARGEST_PNG / image.height);
    const canvas = element('canvas');
    canvas.width = Math.ceil(image.width * scale);
    canvas.height = Math.ceil(image.height * scale);
    const drawing = canvas.getContext('2d');
    drawing.fillStyle = getComputedStyle(document.body).backgroundColor;
    drawing.fillRect(0, 0, canvas.width, canvas.height);
    drawing.drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas.toDataURL('image/png');
}
