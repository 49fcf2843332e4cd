// The view of a model as a whole: in VS Code's webview, where the extension posts what is to be shown, and in an exported file, which holds it.
// Strings of the user's code only ever become text nodes. The model is as model.schema.json describes it.
'use strict';

(() => {
    const host = typeof acquireVsCodeApi === 'function' ? acquireVsCodeApi() : undefined;
    const columns = [
        { key: 'name', title: 'Layer' },
        { key: 'outputs', title: 'Output' },
        { key: 'parameters', title: 'Parameters', amount: true, text: count },
        { key: 'flops', title: 'FLOPs', amount: true, text: (number) => prefixed(number).trimEnd() },
        { key: 'kept_bytes', title: 'Kept', amount: true, text: bytes, hint: 'Kept for backward' },
    ];
    const state = {
        model: undefined,
        message: 'Waiting for the model…',
        withoutExample: '', // the class of which the message is, where an example would help
        note: '', // why what is shown is of an older text
        tab: 'tree',
        dims: 'names',
        sort: { key: '', down: true },
        heat: 'parameters',
        search: '',
        open: new Map(), // by path or group: whether it is unfolded, where the user has said so
        blocks: new Map(), // by node or group
        focus: '',
        cursor: undefined,
        pinned: undefined,
        scaled: false,
        limit: 24, // GB
        largest: {}, // by dim
        box: undefined, // the part of the picture that is seen
        options: { sizes: {}, optimizer: '', device: 'cuda', autocast: '' },
        ...(host?.getState() ?? {}),
    };
    for (const name of ['open', 'blocks']) {
        state[name] = new Map(Array.isArray(state[name]) ? state[name] : []);
    }
    state.model = undefined;
    state.pinned = undefined;

    // --- texts ---

    function count(number) {
        return String(number).replace(/\B(?=(\d{3})+$)/g, '\u202f');
    }
    function prefixed(number) {
        for (const [unit, size] of [['T', 1e12], ['G', 1e9], ['M', 1e6], ['k', 1e3]]) {
            if (Math.abs(number) >= size) return `${(number / size).toFixed(2)} ${unit}`;
        }
        return `${number} `;
    }
    function bytes(number) {
        for (const [unit, size] of [['GB', 2 ** 30], ['MB', 2 ** 20]]) {
            if (Math.abs(number) >= 0.1 * size) return `${(number / size).toFixed(2)} ${unit}`;
        }
        return Math.abs(number) >= 1024 ? `${(number / 1024).toFixed(1)} KB` : `${number} B`;
    }

    // --- elements ---

    function element(name, attributes = {}, ...children) {
        const made = name.startsWith('svg:') ? document.createElementNS('http://www.w3.org/2000/svg', name.slice(4)) : document.createElement(name);
        for (const [key, value] of Object.entries(attributes)) {
            if (value === undefined || value === false) continue;
            if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
            else if (key === 'length') made.style.width = value;
            else made.setAttribute(key, value === true ? '' : String(value));
        }
        made.append(...children.flat().filter((child) => child !== undefined && child !== ''));
        return made;
    }
    /** Give an element these attributes, and take those away that are undefined; what is as it was is not touched. */
    function change(of, attributes) {
        for (const [key, value] of Object.entries(attributes)) {
            if (value === undefined) of.removeAttribute(key);
            else if (of.getAttribute(key) !== String(value)) of.setAttribute(key, value);
        }
        return of;
    }
    const post = (message) => host?.postMessage(message);
    const reveal = (place) => place && post({ type: 'reveal', place });

    // --- the tree ---

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
        for (const column of columns) {
            const sorting = state.sort.key === column.key ? (state.sort.down ? 'descending' : 'ascending') : 'none';
            const button = element('button', { type: 'button', title: column.hint ?? `Sort by ${column.title}`, onclick: () => sortBy(column) }, column.title);
            head.append(element('th', { scope: 'col', role: 'columnheader', 'aria-sort': sorting, class: column.amount ? 'amount' : '' }, button));
        }
        const table = document.getElementById('tree');
        table.setAttribute('aria-label', `Modules of ${state.model.class}`);
        if (table.tHead.innerHTML !== head.outerHTML) table.tHead.replaceChildren(head);
    }

    function sortBy(column) {
        const { key, down } = state.sort;
        state.sort = key !== column.key ? { key: column.key, down: Boolean(column.amount) } : down === Boolean(column.amount) ? { key, down: !down } : { key: '', down: true };
        if (column.amount) state.heat = column.key;
        keep();
        renderHeading();
        renderTree();
        document.querySelector(`th[aria-sort]:nth-child(${columns.indexOf(column) + 1}) button`)?.focus();
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

    /** What the cells of a row say: all that its elements are made from, but whether it is unfolded. */
    function cellsOf(item, largest, before) {
        const { row, level, times } = item;
        const shapes = (of) => (state.dims === 'names' ? of.outputs : of.sizes).join(' · ');
        const old = before?.get(row.path);
        const amounts = columns.filter((column) => column.amount).map((column) => {
            const value = item.members.reduce((total, member) => total + member[column.key], 0);
            const change = before ? value - item.members.reduce((total, member) => total + (before.get(member.path)?.[column.key] ?? 0), 0) : 0;
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

    /** The line of a row, or what it was before with other cells, and behind it the one that says what is wrong. */
    function rowElements({ level, times, amounts, failure, class: name, called, name: own, text, change: was, title }, before) {
        const cells = [
            element('td', { role: 'gridcell', class: 'name' },
                element('span', { class: `indent level${Math.min(level, 12)}` }), element('span', { class: 'fold', 'aria-hidden': 'true' }),
                element('span', {}, own), own === name ? '' : element('span', { class: 'class' }, ` ${name}`),
                times > 1 ? element('span', { class: 'times' }, ` ×${times}`) : '', failure ? element('span', { class: 'cross' }, ' ✗') : ''),
            element('td', { role: 'gridcell', class: called ? 'shape' : 'shape quiet' }, text, was ? element('span', { class: 'changed' }, was) : ''),
            ...amounts.map(({ heat, value, change: by }) => element('td', { role: 'gridcell', class: 'amount' },
                heat ? element('span', { class: 'heat', length: heat }) : '', element('span', { class: 'value' }, value), by ? element('span', { class: 'changed' }, by) : '')),
        ];
        const line = before ?? element('tr', { role: 'row' });
        line.replaceChildren(...cells);
        line.classList.toggle('failed', Boolean(failure));
        change(line, { 'aria-level': level + 1, title: title || undefined });
        if (!failure) return [line];
        const said = element('td', { role: 'gridcell', colspan: columns.length }, element('span', { class: `indent level${Math.min(level + 1, 12)}` }), whatIsWrong(failure));
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

    /** Operations, memory and graph that are still to come are shown as they were before an edit. */
    function keepAmounts(model, before) {
        const rows = rowsByPath(before);
        const now = rowsByPath(model);
        if (!model.graph.nodes.length) {
            // What failed before is not said to fail now.
            const still = (node) => !node.failure || now.get(node.path)?.failure?.message === node.failure.message;
            model.graph = { ...before.graph, nodes: before.graph.nodes.map((node) => (still(node) ? node : { ...node, failure: null })) };
        }
        for (const [path, row] of now) {
            const { flops, backward_flops, kept_bytes } = rows.get(path) ?? row;
            Object.assign(row, { flops, backward_flops, kept_bytes });
        }
        model.memory = before.memory;
    }

    // --- the page ---

    function summary() {
        const { model } = state;
        const sum = (key) => model.tree.reduce((total, row) => total + row[key], 0);
        const [forward, backward] = [sum('flops'), sum('backward_flops')];
        const parts = [model.complete || sum('parameters') ? `${count(sum('parameters'))} parameters` : '',
            forward ? `${prefixed(forward)}FLOPs forward${backward ? `, ${prefixed(backward)}FLOPs backward` : ''}` : ''];
        const { training, inference, uncounted } = model.memory;
        const list = element('p', { class: 'totals' }, parts.filter(Boolean).join(' · '));
        if (training && !training.error) {
            list.append(element('br'), `training step ${bytes(training.peak)} at its peak, in ${training.peak_phase} `);
            if (training.peak_at) {
                const { peak_at } = training;
                list.append(host ? element('button', { type: 'button', class: 'link', onclick: () => reveal(peak_at) }, `at line ${peak_at.line}`) : `at line ${peak_at.line}`);
            }
            list.append(element('span', { class: 'quiet' }, ` · parameters ${bytes(training.parameters + training.buffers)} · gradients ${bytes(training.gradients)} · ${model.memory.optimizer} ${bytes(training.optimizer_state)} · kept ${bytes(training.activations)}`));
            if (model.memory.autocast) list.append(element('span', { class: 'quiet' }, ` · under autocast to ${model.memory.autocast}`));
        } else if (training?.error && training.error !== model.example.error) {
            list.append(element('br'), `training step: ${training.error}`);
        }
        const { advice } = model.memory;
        if (advice) {
            list.append(element('br'), element('span', { class: 'advice' }, advice.message, ' '));
            if (advice.place) list.append(host ? element('button', { type: 'button', class: 'link', onclick: () => reveal(advice.place) }, `at line ${advice.place.line}`) : `at line ${advice.place.line}`);
        }
        for (const [name, size] of Object.entries(state.largest)) list.append(element('span', {}, size ? ` · largest ${name} that fits ${state.limit} GB: ${count(size)}` : ` · no ${name} fits ${state.limit} GB`));
        if (!model.complete) list.append(element('br'), element('span', { class: 'quiet' }, 'memory is being counted…'));
        if (inference && !inference.error && !model.example.error) list.append(element('span', { class: 'quiet' }, ` · inference ${bytes(inference.peak)}`));
        if (uncounted.length) list.append(element('br'), element('span', { class: 'quiet' }, `not counted: ${uncounted.join(', ')}`));
        if (state.pinned) {
            const changes = [`${signed(sum('parameters') - state.pinned.tree.reduce((total, row) => total + row.parameters, 0), count)} parameters`];
            const before = state.pinned.memory.training;
            if (model.complete && training && !training.error && before && !before.error) changes.push(`${signed(training.peak - before.peak, bytes)} at the peak`);
            list.append(element('br'), element('span', { class: 'changed' }, `compared with what was pinned: ${changes.join(', ')}`));
        }
        return list;
    }
    function renderSummary() {
        const before = document.querySelector('header .totals');
        const now = summary();
        if (before && before.innerHTML !== now.innerHTML) before.replaceWith(now);
    }
    const signed = (change, text) => `${change < 0 ? '−' : '+'}${text(Math.abs(change))}`;

    /** What the toolbar is made from: it stays while that does. */
    const toolsOf = ({ others, example, memory, complete }) => JSON.stringify([complete || Boolean(state.pinned), state.tab, state.dims, state.scaled, state.options, state.limit, Boolean(state.pinned), others, example.expression, example.dims, memory.optimizer, memory.autocast]);
    let tools = '';

    function renderToolbar() {
        const before = document.querySelector('.toolbar');
        const wanted = toolsOf(state.model);
        const focused = before.contains(document.activeElement) ? document.activeElement : undefined;
        // What is typed into is not taken away.
        if (before.childNodes.length && (tools === wanted || focused?.tagName === 'INPUT')) return;
        tools = wanted;
        const name = (of) => of.getAttribute('aria-label') ?? of.textContent;
        const bar = toolbar();
        before.replaceWith(bar);
        if (focused) [...bar.querySelectorAll('button, select, input')].find((each) => name(each) === name(focused))?.focus();
    }

    function toolbar() {
        const { model } = state;
        const bar = element('div', { class: 'toolbar', role: 'toolbar', 'aria-label': 'View' });
        const tab = (name, title) => element('button', { type: 'button', 'aria-pressed': String(state.tab === name), onclick: () => { state.tab = name; keep(); render(); } }, title);
        bar.append(tab('tree', 'Tree'), tab('blocks', 'Blocks'));
        bar.append(element('button', { type: 'button', 'aria-pressed': String(state.dims === 'numbers'), onclick: () => { state.dims = state.dims === 'names' ? 'numbers' : 'names'; keep(); render(); } }, 'Numbers'));
        if (state.tab === 'tree') {
            bar.append(element('input', { type: 'search', placeholder: 'Search', 'aria-label': 'Search modules', value: state.search, oninput: (event) => { state.search = event.target.value; keep(); renderTree(); },
                onkeydown: (event) => { if (event.key === 'ArrowDown') { event.preventDefault(); focusRow(state.focus); } } }));
        } else {
            bar.append(element('button', { type: 'button', onclick: fit }, 'Fit'),
                element('button', { type: 'button', 'aria-label': 'Zoom in', onclick: () => zoom(0.8) }, '+'), element('button', { type: 'button', 'aria-label': 'Zoom out', onclick: () => zoom(1.25) }, '−'),
                element('button', { type: 'button', 'aria-pressed': String(state.scaled), title: 'Draw pictures with their size and channels to scale', onclick: () => { state.scaled = !state.scaled; state.box = undefined; keep(); render(); } }, 'To scale'));
        }
        if (host) {
            if (model.others.length) {
                const examples = [...model.others];
                examples.splice(state.options.example ?? 0, 0, model.example.expression);
                bar.append(element('select', { 'aria-label': 'Example', onchange: (event) => { state.options.example = Number(event.target.value); state.options.sizes = {}; ask(); } },
                    examples.map((expression, place) => element('option', { value: place, selected: expression === model.example.expression }, expression))));
            }
            for (const [name, size] of Object.entries(model.example.dims)) bar.append(sizeInput(name, state.options.sizes[name] ?? size));
            if (Object.keys(model.example.dims).length) {
                bar.append(element('label', { title: 'The largest sizes with which a training step fits this memory' }, 'fits ', element('input', { type: 'number', min: 0, step: 'any', 'aria-label': 'Memory in GB', value: state.limit, onchange: (event) => { state.limit = Number(event.target.value) || 0; keep(); state.largest = {}; Object.keys(model.example.dims).forEach(askMemory); render(); } }), ' GB'));
            }
            const optimizers = [...new Set([model.memory.optimizer, 'SGD', 'momentum', 'Adam', 'AdamW', 'Adafactor', 'Adam8bit', 'AdamW8bit'])];
            bar.append(element('select', { 'aria-label': 'Optimizer', onchange: (event) => { state.options.optimizer = event.target.value; ask(); } },
                optimizers.map((name) => element('option', { value: name, selected: name === model.memory.optimizer }, name))));
            const precisions = { none: 'no autocast', bfloat16: 'autocast bfloat16', float16: 'autocast float16' };
            bar.append(element('select', { 'aria-label': 'Autocast', onchange: (event) => { state.options.autocast = event.target.value; ask(); } },
                Object.entries(precisions).map(([value, title]) => element('option', { value, selected: value === (model.memory.autocast ?? 'none') }, title))));
            bar.append(element('button', { type: 'button', 'aria-pressed': String(Boolean(state.pinned)), disabled: !model.complete && !state.pinned, title: 'Pin this state, and show what edits change of it', onclick: () => { state.pinned = state.pinned ? undefined : state.model; render(); } }, 'Compare'));
            bar.append(element('button', { type: 'button', onclick: () => post({ type: 'markdown' }) }, 'Copy as Markdown'));
            bar.append(element('button', { type: 'button', onclick: () => post({ type: 'save', kind: 'html' }) }, 'Save as HTML'));
        }
        if (state.tab === 'blocks') {
            const save = (kind, content) => (host ? post({ type: 'save', kind, content }) : download(`model.${kind}`, content));
            bar.append(element('button', { type: 'button', onclick: () => save('svg', `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText())}`) }, 'Save as SVG'),
                element('button', { type: 'button', onclick: () => void png().then((content) => save('png', content)) }, 'Save as PNG'));
        }
        return bar;
    }

    /** A slider for a named dim. Its memory is asked for as it moves, and all else once it rests. */
    function sizeInput(name, size) {
        const number = element('input', { type: 'number', min: 1, value: size, 'aria-label': `Size of ${name}` });
        const slider = element('input', { type: 'range', min: 0, max: 16, step: 0.01, value: Math.log2(size), 'aria-label': `Size of ${name}, slider`, 'aria-valuetext': size });
        const wanted = (value) => { state.options.sizes = { ...state.options.sizes, [name]: Math.max(1, Math.round(value)) }; };
        const prepare = () => { if (!prepared.has(name)) { prepared.add(name); askMemory(name); } };
        for (const input of [number, slider]) input.addEventListener('focus', prepare);
        slider.addEventListener('input', () => { wanted(2 ** Number(slider.value)); number.value = state.options.sizes[name]; slider.setAttribute('aria-valuetext', number.value); askMemory(name); });
        slider.addEventListener('change', ask);
        number.addEventListener('change', () => { if (Number(number.value) > 0) { wanted(Number(number.value)); slider.value = Math.log2(Number(number.value)); ask(); } });
        return element('label', {}, `${name} `, slider, number);
    }
    const prepared = new Set(); // dims whose formula has been asked for, of the model that is shown
    const asking = new Map(); // by dim: whether its memory has to be asked for once more when the answer is there
    function askMemory(dim) {
        if (asking.has(dim)) { asking.set(dim, true); return; }
        asking.set(dim, false);
        post({ type: 'memory', options: { ...state.options, memory: dim, limit: Math.round(state.limit * 2 ** 30) } });
    }

    const exampleButton = (name) => element('button', { type: 'button', onclick: () => post({ type: 'example', class: name }) }, 'Set an example…');

    /** Where an example that nobody has given was found. */
    const evidenceOf = ({ evidence, where }) => (evidence === 'inferred' ? 'inferred' : where ? `from ${where}` : `from ${{ usage: 'its use', annotation: 'the annotations', factory: 'a factory' }[evidence]}`);

    /** Why the example did not run to its end, if it did not. */
    function outcomeOf({ class: name, example: { error, fits } }) {
        if (fits !== false) return element('p', { class: 'outcome error', role: 'alert', hidden: !error }, error ?? '');
        return element('p', { class: 'outcome quiet', role: 'status' }, `No example input was found for ${name}. This is the best of what was tried, and it fails: ${error}. `, host ? exampleButton(name) : '');
    }

    /** What fails under an example that is only the best of what was tried is no mistake of the model's, unless the file is said to have it. */
    function withoutDoubtful(model) {
        if (model.example.fits !== false) return model;
        const clear = (of) => { if (!of.failure?.place) of.failure = null; };
        const walk = (row) => { clear(row); row.rows.forEach(walk); };
        model.tree.forEach(walk);
        model.graph.nodes.forEach(clear);
        return model;
    }

    const say = (of, text) => { if (of.textContent !== text) of.textContent = text; };

    /** Show the state. What is as it was is not touched: who reads, types or has scrolled is not disturbed. */
    function render() {
        const root = document.getElementById('root');
        const { model } = state;
        if (!model) {
            root.replaceChildren(
                element('p', { class: 'message quiet', role: 'status' }, state.message),
                element('p', { class: 'message' }, state.withoutExample ? exampleButton(state.withoutExample) : ''),
            );
            return;
        }
        if (!root.querySelector('main')) {
            root.replaceChildren(
                element('header', {}, element('h1'), element('code'), element('span', { class: 'quiet' }), element('p', { class: 'totals' }), element('p', { class: 'note quiet', role: 'status', hidden: true }), element('div', { class: 'toolbar' })),
                element('main', {}, element('p', { class: 'outcome' })),
            );
        }
        const [heading, example, path] = root.querySelector('header').children;
        say(heading, model.class);
        say(example, model.example.expression);
        say(path, [model.path ? `at ${model.path}` : '', ['inferred', 'usage', 'annotation', 'factory'].includes(model.example.evidence) ? evidenceOf(model.example) : ''].filter(Boolean).join(' · '));
        path.hidden = !path.textContent;
        renderSummary();
        const note = root.querySelector('.note');
        say(note, state.note);
        note.hidden = !state.note;
        renderToolbar();
        const main = root.querySelector('main');
        const outcome = outcomeOf(model);
        if (main.firstChild.outerHTML !== outcome.outerHTML) main.firstChild.replaceWith(outcome);
        const id = state.tab === 'tree' ? 'tree' : 'blocks';
        if (main.lastChild.id !== id) main.replaceChildren(main.firstChild, id === 'tree' ? tree() : picturePlace());
        if (id === 'tree') {
            renderHeading();
            renderTree();
        } else {
            renderBlocks();
        }
    }

    function ask() {
        keep();
        post({ type: 'options', options: state.options });
    }
    function keep() {
        const { tab, dims, sort, heat, search, scaled, limit, options } = state;
        host?.setState({ tab, dims, sort, heat, search, scaled, limit, options, open: [...state.open], blocks: [...state.blocks] });
    }
    const download = (name, url) => element('a', { href: url, download: name }).click();

    // --- blocks: modules as nested boxes in the order of their calls, joined by the tensors that flow between them ---

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
        const svg = element('svg:svg', { role: 'group', tabindex: 0, onkeydown: onPan, onwheel, onpointerdown: onDrag, onclick: onBox }, element('svg:defs', {}, arrow), whole.group);
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
    function onwheel(event) {
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

    // --- what comes from outside ---

    window.addEventListener('message', ({ data }) => {
        if (data.type === 'model') {
            const other = state.model && (state.model.class !== data.model.class || state.model.file !== data.model.file);
            if (other) { state.options.example = 0; state.options.sizes = {}; }
            if (other) { state.pinned = undefined; state.box = undefined; state.open.clear(); state.blocks.clear(); }
            if (!data.model.complete && state.model && !other) keepAmounts(data.model, state.model);
            state.model = withoutDoubtful(data.model);
            state.note = '';
            // What was said of sizes was of the model before; where somebody has asked for that, the new one is asked, too.
            const wanted = other ? [] : [...prepared].filter((dim) => dim in data.model.example.dims);
            state.largest = {};
            prepared.clear();
            if (data.model.complete) wanted.forEach((dim) => { prepared.add(dim); askMemory(dim); });
            else wanted.forEach((dim) => prepared.add(dim));
            render();
            if (other) document.querySelector('main').scrollTop = 0;
        } else if (data.type === 'memory') {
            const again = asking.get(data.dim);
            asking.delete(data.dim);
            if (again) askMemory(data.dim);
            if (!state.model || !data.memory) return;
            state.model = { ...state.model, memory: data.memory };
            if (data.largest !== null) state.largest[data.dim] = data.largest;
            renderSummary();
        } else if (data.type === 'message') {
            // Of the class that is shown there may be nothing new for a while, as long as its text is incomplete.
            const same = data.same && state.model;
            if (!same) state.model = undefined;
            state.note = same ? `${data.text}. This is what was seen of it before.` : '';
            state.message = data.text;
            state.withoutExample = data.withoutExample ?? '';
            render();
        } else if (data.type === 'cursor') {
            state.cursor = data.cursor;
            markCursor();
        }
    });
    // Whoever comes here by keyboard is in the table, and not before a long toolbar.
    window.addEventListener('focus', () => {
        if (document.activeElement === document.body) document.querySelector('#tree tbody tr[tabindex="0"]')?.focus({ preventScroll: true });
    });
    const held = document.getElementById('model');
    if (held) state.model = withoutDoubtful(JSON.parse(held.textContent));
    render();
    post({ type: 'ready', options: state.options });
})();
