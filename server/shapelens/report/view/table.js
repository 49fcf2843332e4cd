// The tree: a table of the modules in the order of their calls, which folds.
'use strict';

const amount = (key, title, text, hint) => ({ key, title, amount: true, text, hint });
const KEPT = amount('kept_bytes', 'Kept', bytes, 'Kept for backward');
const AMOUNTS = {
    cost: [amount('parameters', 'Parameters', count), amount('flops', 'FLOPs', (number) => prefixed(number).trimEnd()), KEPT],
    memory: [
        amount('held_bytes', 'Parameters', bytes, 'Parameters and buffers'),
        amount('gradient_bytes', 'Gradients', bytes, 'Of the gradients of the parameters'),
        amount('optimizer_bytes', 'Optimizer', bytes, 'What the optimizer keeps for the parameters'),
        KEPT,
        amount('temporary_bytes', 'Temporary', bytes, 'The most that is there at one moment of what is allocated in forward or backward for a while'),
    ],
};
const columns = () => [{ key: 'name', title: 'Layer' }, { key: 'outputs', title: 'Output' }, ...AMOUNTS[state.amounts]];

/** Show these amounts in the columns: "cost" or "memory". */
function showAmounts(which) {
    state.amounts = which;
    if (!columns().some(({ key }) => key === state.sort.key)) state.sort = { key: '', down: true };
    if (!AMOUNTS[which].some(({ key }) => key === state.heat)) state.heat = AMOUNTS[which][0].key;
    keep();
    render();
}

/** The rows that are shown, flat: of repeated siblings the first, as a group that unfolds. */
function visibleRows() {
    const found = [];
    const wanted = state.search.trim().toLowerCase();
    const fitting = new Map();
    const matches = (row) => {
        if (!fitting.has(row)) fitting.set(row, `${row.path} ${row.class}`.toLowerCase().includes(wanted) || row.rows.some(matches));
        return fitting.get(row);
    };
    const sorted = (rows) => {
        const { key, down } = state.sort;
        if (!key) return rows;
        const value = (row) => (key === 'name' ? row.name : key === 'outputs' ? (row.outputs[0] ?? '') : row[key]);
        return [...rows].sort((one, other) => (value(one) < value(other) ? -1 : value(one) > value(other) ? 1 : 0) * (down ? -1 : 1));
    };
    const add = (rows, level, inGroup) => {
        const list = sorted(wanted ? rows.filter(matches) : rows);
        for (let place = 0; place < list.length; ) {
            let end = place + 1;
            while (!inGroup && !state.sort.key && end < list.length && list[end].signature === list[place].signature) end += 1;
            const row = list[place];
            if (end - place > 1) {
                const id = `${row.path}×`;
                const unfolded = state.open.get(id) ?? false;
                found.push({ id, row, level, times: end - place, members: list.slice(place, end), unfoldable: true, unfolded });
                if (unfolded) add(list.slice(place, end), level + 1, true);
            } else {
                const unfolded = row.rows.length > 0 && (state.open.get(row.path) ?? (level < 1 || wanted !== '' || fails(row)));
                found.push({ id: row.path, row, level, times: 1, members: [row], unfoldable: row.rows.length > 0, unfolded });
                if (unfolded) add(row.rows, level + 1, false);
            }
            place = end;
        }
    };
    add(state.model.tree, 0, false);
    return found;
}
const failing = new WeakMap(); // by row: whether something inside of it fails
const fails = (row) => {
    if (!failing.has(row)) failing.set(row, row.rows.some((inner) => inner.failure || fails(inner)));
    return failing.get(row);
};

function toggle(item, open = !item.unfolded) {
    state.open.set(item.id, open);
    renderTree();
    keep();
}

function tree() {
    const body = element('tbody', { role: 'rowgroup', onclick: onRowClick, onkeydown: onRowKey, onfocusin: (event) => { state.focus = itemAt(event)?.id ?? state.focus; } });
    drawnRows = new Map();
    return element('table', { role: 'treegrid', id: 'tree' }, element('thead', { role: 'rowgroup' }), body);
}

function renderHeading() {
    const head = element('tr', { role: 'row' });
    for (const column of columns()) {
        const sorting = state.sort.key === column.key ? (state.sort.down ? 'descending' : 'ascending') : 'none';
        const button = element('button', { type: 'button', title: column.hint ?? `Sort by ${column.title}`, onclick: () => sortBy(column) }, column.title);
        head.append(element('th', { scope: 'col', role: 'columnheader', 'aria-sort': sorting, class: column.amount ? 'amount' : '' }, button));
    }
    const table = document.getElementById('tree');
    table.setAttribute('aria-label', `Modules of ${state.model.class}`);
    table.className = state.amounts;
    if (table.tHead.innerHTML !== head.outerHTML) table.tHead.replaceChildren(head);
}

function sortBy(column) {
    const { key, down } = state.sort;
    state.sort = key !== column.key ? { key: column.key, down: Boolean(column.amount) } : down === Boolean(column.amount) ? { key, down: !down } : { key: '', down: true };
    if (column.amount) state.heat = column.key;
    keep();
    renderHeading();
    renderTree();
    document.querySelector(`th[aria-sort]:nth-child(${columns().indexOf(column) + 1}) button`)?.focus();
}

/** Each row that is drawn, by its id: its elements, and what they were made from. */
let drawnRows = new Map();
let items = []; // of the rows, those that are still to be drawn included, in their order
const MOST_NEW_ROWS = 120; // at a time; the others follow, a picture of the screen later

/** Draw the rows that are to be seen: those that are drawn already stay, with focus and scroll, and only what changed of the others is made anew. */
function renderTree(most = MOST_NEW_ROWS) {
    const body = document.querySelector('#tree tbody');
    if (!body) return;
    items = visibleRows();
    const largest = Math.max(1, ...state.model.tree.map((row) => row[state.heat]));
    const before = state.pinned && rowsByPath(state.pinned);
    const hadFocus = body.contains(document.activeElement);
    const wanted = new Set(items.map((item) => item.id));
    for (const [id, drawn] of drawnRows) {
        if (wanted.has(id)) continue;
        drawn.elements.forEach((line) => line.remove());
        drawnRows.delete(id);
    }
    if (!wanted.has(state.focus)) state.focus = items[0]?.id ?? '';
    let next = body.firstChild;
    let made = 0;
    for (const item of items) {
        if (made >= most) {
            requestAnimationFrame(() => renderTree());
            break;
        }
        let drawn = drawnRows.get(item.id);
        const cells = cellsOf(item, largest, before);
        const madeFrom = JSON.stringify(cells);
        if (drawn?.madeFrom !== madeFrom) {
            made += 1;
            const [line, ...below] = drawn?.elements ?? [];
            below.forEach((each) => each.remove());
            drawn = { elements: rowElements(cells, line), madeFrom };
            drawnRows.set(item.id, drawn);
        }
        const [line] = drawn.elements;
        change(line, { 'aria-expanded': item.unfoldable ? String(item.unfolded) : undefined, tabindex: item.id === state.focus ? 0 : -1, 'data-id': item.id });
        const mark = item.unfoldable ? (item.unfolded ? '▾' : '▸') : '';
        const fold = line.firstChild.childNodes[1];
        if (fold.textContent !== mark) fold.textContent = mark;
        for (const each of drawn.elements) {
            if (each === next) next = next.nextSibling;
            else body.insertBefore(each, next);
        }
    }
    markCursor();
    if (hadFocus && !body.contains(document.activeElement)) body.querySelector('[tabindex="0"]')?.focus();
}

/** An amount of several rows: what is there for a while is not there in all of them at once. */
function together(column, rows) {
    const values = rows.map((row) => row?.[column.key] ?? 0);
    return column.key === 'temporary_bytes' ? Math.max(0, ...values) : values.reduce((total, value) => total + value, 0);
}

/** What the cells of a row say: all that its elements are made from, but whether it is unfolded. */
function cellsOf(item, largest, before) {
    const { row, level, times } = item;
    const shapes = (of) => (state.dims === 'names' ? of.outputs : of.sizes).join(' | ');
    const old = before?.get(row.path);
    const amounts = AMOUNTS[state.amounts].map((column) => {
        const value = together(column, item.members);
        const change = before ? value - together(column, item.members.map(({ path }) => before.get(path))) : 0;
        return {
            heat: column.key === state.heat && value ? `${Math.min(100, (100 * value) / largest)}%` : '',
            value: value ? column.text(value) : '',
            change: change ? ` ${signed(change, column.text)}` : '',
        };
    });
    return {
        level, times, amounts, failure: row.failure, class: row.class, called: row.calls > 0,
        name: times > 1 ? `${row.name} … ${item.members.at(-1).name}` : row.name,
        text: row.calls ? shapes(row) + (row.calls > 1 ? ` · ${row.calls} calls` : '') : row.rows.length ? '' : 'not called',
        change: before && (!old || shapes(old) !== shapes(row)) ? (old ? ` was ${shapes(old) || '–'}` : ' new') : '',
        // Its place: each row has one of its own, or null.
        title: [row.description, row['constructor'] ? 'click: constructor, second click: call in forward' : ''].filter(Boolean).join('\n'),
    };
}

/** Several shapes, each of which stays on one line. */
const pieces = (text) => text.split(/ (?=[|·] )/).flatMap((piece, place) => [...(place ? [' '] : []), element('span', { class: 'whole' }, piece)]);

/** The line of a row, or what it was before with other cells, and behind it the one that says what is wrong. */
function rowElements({ level, times, amounts, failure, class: name, called, name: own, text, change: was, title }, before) {
    const cells = [
        element('td', { role: 'gridcell', class: 'name' },
            element('span', { class: `indent level${Math.min(level, 12)}` }), element('span', { class: 'fold', 'aria-hidden': 'true' }),
            element('span', {}, own), own === name ? '' : element('span', { class: 'class' }, ` ${name}`),
            times > 1 ? element('span', { class: 'times' }, ` ×${times}`) : '', failure ? element('span', { class: 'cross' }, ' ✗') : ''),
        element('td', { role: 'gridcell', class: called ? 'shape' : 'shape quiet' }, pieces(text), was ? element('span', { class: 'changed' }, was) : ''),
        ...amounts.map(({ heat, value, change: by }) => element('td', { role: 'gridcell', class: 'amount' },
            heat ? element('span', { class: 'heat', length: heat }) : '', element('span', { class: 'value' }, value), by ? element('span', { class: 'changed' }, by) : '')),
    ];
    const line = before ?? element('tr', { role: 'row' });
    const fold = line.querySelector('.fold');
    if (fold) cells[0].querySelector('.fold').textContent = fold.textContent;
    settle(line, cells);
    line.classList.toggle('failed', Boolean(failure));
    change(line, { 'aria-level': level + 1, title: title || undefined });
    if (!failure) return [line];
    const said = element('td', { role: 'gridcell', colspan: columns().length }, element('span', { class: `indent level${Math.min(level + 1, 12)}` }), whatIsWrong(failure));
    return [line, element('tr', { role: 'row', class: 'message', 'aria-level': level + 2 }, said)];
}

/** The message of what fails, and the button that mends it. */
function whatIsWrong({ message, place, fix }) {
    const mend = (event) => { event.stopPropagation(); post({ type: 'fix', place, title: fix }); };
    return element('span', { class: 'wrong' }, element('span', { class: 'error' }, message), ' ',
        host && place ? element('button', { type: 'button', class: 'fix', onclick: mend }, fix ?? 'Fix…') : '');
}

/** The item of the row at which something happens. */
const itemAt = (event) => {
    const id = event.target.closest('tr[data-id]')?.dataset.id;
    return items.find((item) => item.id === id);
};

function onRowClick(event) {
    const item = itemAt(event);
    if (!item) return;
    if (event.target.classList.contains('fold')) toggle(item);
    else choose(item, item.row['constructor']);
}

let lastClick = '';
function choose(item, place) {
    focusRow(item.id);
    const again = lastClick === item.id;
    lastClick = again ? '' : item.id;
    reveal(again ? (item.row.call ?? place) : (place ?? item.row.call));
}

function focusRow(id) {
    if (!drawnRows.has(id)) renderTree(Infinity);
    drawnRows.get(state.focus)?.elements[0].setAttribute('tabindex', -1);
    state.focus = id;
    const line = drawnRows.get(id)?.elements[0];
    line?.setAttribute('tabindex', 0);
    line?.focus();
}

function onRowKey(event) {
    const item = itemAt(event);
    if (!item || event.target.tagName === 'BUTTON') return;
    const place = item.row['constructor'];
    const go = (step) => {
        focusRow(items[Math.max(0, Math.min(items.length - 1, step(items.indexOf(item), items.length)))].id);
    };
    const keys = {
        ArrowDown: () => go((at) => at + 1), ArrowUp: () => go((at) => at - 1), Home: () => go(() => 0), End: () => go((at, length) => length - 1),
        PageDown: () => go((at) => at + 15), PageUp: () => go((at) => at - 15),
        ArrowRight: () => (item.unfoldable && !item.unfolded ? toggle(item, true) : go((at) => at + 1)),
        ArrowLeft: () => {
            if (item.unfoldable && item.unfolded) return toggle(item, false);
            const parent = items.slice(0, items.indexOf(item)).findLast(({ level }) => level < item.level);
            return parent && focusRow(parent.id);
        },
        Enter: () => reveal(event.shiftKey ? item.row.call : (place ?? item.row.call)), ' ': () => item.unfoldable && toggle(item),
    };
    if (keys[event.key]) {
        event.preventDefault();
        keys[event.key]();
    }
}

let marked = ''; // the row that was at the cursor

/** The row of what is at the cursor: the innermost whose call or constructor is on its line. */
function markCursor() {
    const body = document.querySelector('#tree tbody');
    if (!body || !state.model) return;
    const on = (place) => place && state.cursor && place.file === state.cursor.file && place.line <= state.cursor.line && state.cursor.line <= place.end_line;
    const id = items.findLast(({ row }) => on(row.call) || on(row['constructor']))?.id;
    const line = drawnRows.get(id)?.elements[0];
    for (const other of body.querySelectorAll('.at-cursor')) if (other !== line) other.classList.remove('at-cursor');
    line?.classList.add('at-cursor');
    // Whoever is in the table, or has scrolled it, stays where they are until the cursor moves on.
    if (line && id !== marked && !body.contains(document.activeElement)) line.scrollIntoView({ block: 'nearest' });
    if (line || id === undefined) marked = id ?? '';
}

const byPath = new WeakMap();
function rowsByPath(model) {
    if (!byPath.has(model.tree)) {
        const rows = new Map();
        const add = (row) => { rows.set(row.path, row); row.rows.forEach(add); };
        model.tree.forEach(add);
        byPath.set(model.tree, rows);
    }
    return byPath.get(model.tree);
}
