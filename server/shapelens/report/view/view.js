// The view of a model as a whole: in VS Code's webview, where the extension posts what is to be shown, and in an exported file, which holds it.
// Strings of the user's code only ever become text nodes. The model is as model.schema.json describes it.
'use strict';

(() => {
    const host = typeof acquireVsCodeApi === 'function' ? acquireVsCodeApi() : undefined;
    const columns = [
        { key: 'name', title: 'Layer' },
        { key: 'outputs', title: 'Output' },
        { key: 'parameters', title: 'Parameters', amount: true, text: count },
        { key: 'flops', title: 'FLOPs', amount: true, text: prefixed },
        { key: 'kept_bytes', title: 'Kept', amount: true, text: bytes, hint: 'Kept for backward' },
    ];
    const state = {
        model: undefined,
        message: 'Waiting for the model…',
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
        return String(number);
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
    const post = (message) => host?.postMessage(message);
    const reveal = (place) => place && post({ type: 'reveal', place });

    // --- the tree ---

    /** The rows that are shown, flat: of repeated siblings the first, as a group that unfolds. */
    function visibleRows() {
        const found = [];
        const wanted = state.search.trim().toLowerCase();
        const matches = (row) =>
            `${row.path} ${row.class}`.toLowerCase().includes(wanted) || row.rows.some(matches);
        const sorted = (rows) => {
            const { key, down } = state.sort;
            if (!key) return rows;
            const value = (row) => (key === 'name' ? row.name : key === 'outputs' ? (row.outputs[0] ?? '') : row[key]);
            return [...rows].sort((one, other) => (value(one) < value(other) ? -1 : value(one) > value(other) ? 1 : 0) * (down ? -1 : 1));
        };
        const add = (rows, level, inGroup) => {
            const list = sorted(rows.filter((row) => !wanted || matches(row)));
            for (let place = 0; place < list.length; ) {
                let end = place + 1;
                while (!inGroup && !state.sort.key && end < list.length && list[end].signature === list[place].signature) end += 1;
                const row = list[place];
                if (end - place > 1) {
                    const id = `${row.path}×`;
                    const unfolded = isOpen(id, false);
                    found.push({ id, row, level, times: end - place, members: list.slice(place, end), unfoldable: true, unfolded });
                    if (unfolded) add(list.slice(place, end), level + 1, true);
                } else {
                    const unfolded = row.rows.length > 0 && isOpen(row.path, level < 1 || wanted !== '' || fails(row));
                    found.push({ id: row.path, row, level, times: 1, members: [row], unfoldable: row.rows.length > 0, unfolded });
                    if (unfolded) add(row.rows, level + 1, false);
                }
                place = end;
            }
        };
        add(state.model.tree, 0, false);
        return found;
    }
    const fails = (row) => row.rows.some((inner) => inner.failure || fails(inner));
    const isOpen = (id, otherwise) => state.open.get(id) ?? otherwise;

    function toggle(item, open = !item.unfolded) {
        state.open.set(item.id, open);
        keep();
        renderTree();
    }

    function tree() {
        const table = element('table', { role: 'treegrid', 'aria-label': `Modules of ${state.model.class}`, id: 'tree' });
        const head = element('tr', { role: 'row' });
        for (const column of columns) {
            const sorting = state.sort.key === column.key ? (state.sort.down ? 'descending' : 'ascending') : 'none';
            const button = element('button', { type: 'button', title: column.hint ?? `Sort by ${column.title}`, onclick: () => sortBy(column) }, column.title);
            head.append(element('th', { scope: 'col', role: 'columnheader', 'aria-sort': sorting, class: column.amount ? 'amount' : '' }, button));
        }
        table.append(element('thead', { role: 'rowgroup' }, head), element('tbody', { role: 'rowgroup' }));
        return table;
    }

    function sortBy(column) {
        const { key, down } = state.sort;
        state.sort = key !== column.key ? { key: column.key, down: Boolean(column.amount) } : down === Boolean(column.amount) ? { key, down: !down } : { key: '', down: true };
        if (column.amount) state.heat = column.key;
        keep();
        render();
        document.querySelector(`th[aria-sort]:nth-child(${columns.indexOf(column) + 1}) button`)?.focus();
    }

    function renderTree() {
        const body = document.querySelector('#tree tbody');
        if (!body) return;
        const items = visibleRows();
        const largest = Math.max(1, ...state.model.tree.map((row) => row[state.heat]));
        const before = state.pinned && rowsByPath(state.pinned);
        const hadFocus = body.contains(document.activeElement);
        if (!items.some((item) => item.id === state.focus)) state.focus = items[0]?.id ?? '';
        body.replaceChildren(...items.flatMap((item) => rowElements(item, largest, before)));
        markCursor();
        if (hadFocus) body.querySelector('[tabindex="0"]')?.focus();
    }

    function rowElements(item, largest, before) {
        const { row, level, times } = item;
        const name = times > 1 ? `${row.name} … ${item.members.at(-1).name}` : row.name;
        const cells = [element('td', { role: 'gridcell', class: 'name' },
            element('span', { class: `indent level${Math.min(level, 12)}` }),
            element('span', { class: 'fold', 'aria-hidden': 'true', onclick: (event) => { event.stopPropagation(); toggle(item); } }, item.unfoldable ? (item.unfolded ? '▾' : '▸') : ''),
            element('span', {}, name), name === row.class ? '' : element('span', { class: 'class' }, ` ${row.class}`),
            times > 1 ? element('span', { class: 'times' }, ` ×${times}`) : '',
            row.failure ? element('span', { class: 'cross' }, ' ✗') : '')];
        const old = before?.get(row.path);
        const shapes = (of) => (state.dims === 'names' ? of.outputs : of.sizes).join(' · ');
        const text = row.calls ? shapes(row) + (row.calls > 1 ? ` · ${row.calls} calls` : '') : row.rows.length ? '' : 'not called';
        cells.push(element('td', { role: 'gridcell', class: row.calls ? 'shape' : 'shape quiet' }, text,
            before && (!old || shapes(old) !== shapes(row)) ? element('span', { class: 'changed' }, old ? ` was ${shapes(old) || '–'}` : ' new') : ''));
        for (const column of columns.filter((column) => column.amount)) {
            const value = item.members.reduce((total, member) => total + member[column.key], 0);
            const change = before ? value - item.members.reduce((total, member) => total + (before.get(member.path)?.[column.key] ?? 0), 0) : 0;
            cells.push(element('td', { role: 'gridcell', class: 'amount' },
                column.key === state.heat && value ? element('span', { class: 'heat', length: `${Math.min(100, (100 * value) / largest)}%` }) : '',
                element('span', { class: 'value' }, value ? column.text(value) : ''),
                change ? element('span', { class: 'changed' }, ` ${change > 0 ? '+' : '−'}${column.text(Math.abs(change))}`) : ''));
        }
        const own = row['constructor']; // Its place: each row has one of its own, or null.
        const line = element('tr', {
            role: 'row', 'aria-level': level + 1, 'aria-expanded': item.unfoldable ? String(item.unfolded) : undefined,
            tabindex: item.id === state.focus ? 0 : -1, 'data-id': item.id, class: row.failure ? 'failed' : '',
            title: [row.description, own ? 'click: constructor, second click: call in forward' : ''].filter(Boolean).join('\n'),
            onclick: () => choose(item, own), onkeydown: (event) => onKey(event, item, own),
            onfocus: () => { state.focus = item.id; },
        }, cells);
        if (!row.failure) return [line];
        const said = element('td', { role: 'gridcell', colspan: columns.length }, element('span', { class: `indent level${Math.min(level + 1, 12)}` }), whatIsWrong(row.failure));
        return [line, element('tr', { role: 'row', class: 'message', 'aria-level': level + 2 }, said)];
    }

    /** The message of what fails, and the button that mends it. */
    function whatIsWrong({ message, place, fix }) {
        const mend = (event) => { event.stopPropagation(); post({ type: 'fix', place, title: fix }); };
        return element('span', { class: 'wrong' }, element('span', { class: 'error' }, message), ' ',
            host && place ? element('button', { type: 'button', class: 'fix', onclick: mend }, fix ?? 'Fix…') : '');
    }

    let lastClick = '';
    function choose(item, place) {
        focusRow(item.id);
        const again = lastClick === item.id;
        lastClick = again ? '' : item.id;
        reveal(again ? (item.row.call ?? place) : (place ?? item.row.call));
    }

    function focusRow(id) {
        state.focus = id;
        for (const line of document.querySelectorAll('#tree tbody tr[data-id]')) line.tabIndex = line.dataset.id === id ? 0 : -1;
        document.querySelector('#tree tbody tr[tabindex="0"]')?.focus();
    }

    function onKey(event, item, place) {
        if (event.target.tagName === 'BUTTON') return;
        const lines = [...document.querySelectorAll('#tree tbody tr[data-id]')];
        const at = lines.findIndex((line) => line.dataset.id === item.id);
        const go = (index) => focusRow(lines[Math.max(0, Math.min(lines.length - 1, index))].dataset.id);
        const level = Number(lines[at].getAttribute('aria-level'));
        const keys = {
            ArrowDown: () => go(at + 1), ArrowUp: () => go(at - 1), Home: () => go(0), End: () => go(lines.length - 1),
            PageDown: () => go(at + 15), PageUp: () => go(at - 15),
            ArrowRight: () => (item.unfoldable && !item.unfolded ? toggle(item, true) : go(at + 1)),
            ArrowLeft: () => {
                if (item.unfoldable && item.unfolded) return toggle(item, false);
                const parent = lines.slice(0, at).findLast((line) => Number(line.getAttribute('aria-level')) < level);
                return parent && focusRow(parent.dataset.id);
            },
            Enter: () => reveal(event.shiftKey ? item.row.call : (place ?? item.row.call)), ' ': () => item.unfoldable && toggle(item),
        };
        if (keys[event.key]) {
            event.preventDefault();
            keys[event.key]();
        }
    }

    /** The row of what is at the cursor: the innermost whose call or constructor is on its line. */
    function markCursor() {
        const body = document.querySelector('#tree tbody');
        if (!body) return;
        for (const line of body.querySelectorAll('.at-cursor')) line.classList.remove('at-cursor');
        if (!state.cursor || !state.model) return;
        const on = (place) => place && place.file === state.cursor.file && place.line <= state.cursor.line && state.cursor.line <= place.end_line;
        const found = visibleRows().filter(({ row }) => on(row.call) || on(row['constructor']));
        const line = found.length ? [...body.querySelectorAll('tr[data-id]')].find((line) => line.dataset.id === found.at(-1).id) : undefined;
        line?.classList.add('at-cursor');
        if (line && !body.contains(document.activeElement)) line.scrollIntoView({ block: 'nearest' });
    }

    function rowsByPath(model) {
        const rows = new Map();
        const add = (row) => { rows.set(row.path, row); row.rows.forEach(add); };
        model.tree.forEach(add);
        return rows;
    }

    /** Operations, memory and graph that are still to come are shown as they were before an edit. */
    function keepAmounts(model, before) {
        if (!model.graph.nodes.length) model.graph = before.graph;
        const rows = rowsByPath(before);
        for (const [path, row] of rowsByPath(model)) {
            const { flops, backward_flops, kept_bytes } = rows.get(path) ?? row;
            Object.assign(row, { flops, backward_flops, kept_bytes });
        }
        model.memory = before.memory;
    }

    // --- the page ---

    function summary() {
        const { model } = state;
        const sum = (key) => model.tree.reduce((total, row) => total + row[key], 0);
        const parts = [`${count(sum('parameters'))} parameters`, sum('flops') ? `${prefixed(sum('flops'))}FLOPs forward` : ''];
        const { training, inference } = model.memory;
        const list = element('p', { class: 'totals' }, parts.filter(Boolean).join(' · '));
        if (training && !training.error) {
            list.append(element('br'), `training step ${bytes(training.peak)} at its peak, in ${training.peak_phase} `);
            if (training.peak_at) {
                const { peak_at } = training;
                list.append(host ? element('button', { type: 'button', class: 'link', onclick: () => reveal(peak_at) }, `at line ${peak_at.line}`) : `at line ${peak_at.line}`);
            }
            list.append(element('span', { class: 'quiet' }, ` · parameters ${bytes(training.parameters + training.buffers)} · gradients ${bytes(training.gradients)} · ${model.memory.optimizer} ${bytes(training.optimizer_state)} · kept ${bytes(training.activations)}`));
            if (model.memory.autocast) list.append(element('span', { class: 'quiet' }, ` · under autocast to ${model.memory.autocast}`));
        } else if (training?.error) {
            list.append(element('br'), `training step: ${training.error}`);
        }
        const { advice } = model.memory;
        if (advice) {
            list.append(element('br'), element('span', { class: 'advice' }, advice.message, ' '));
            if (advice.place) list.append(host ? element('button', { type: 'button', class: 'link', onclick: () => reveal(advice.place) }, `at line ${advice.place.line}`) : `at line ${advice.place.line}`);
        }
        for (const [name, size] of Object.entries(state.largest)) list.append(element('span', {}, size ? ` · largest ${name} that fits ${state.limit} GB: ${count(size)}` : ` · no ${name} fits ${state.limit} GB`));
        if (!model.complete) list.append(element('br'), element('span', { class: 'quiet' }, 'memory is being counted…'));
        if (inference && !inference.error) list.append(element('span', { class: 'quiet' }, ` · inference ${bytes(inference.peak)}`));
        if (state.pinned) list.append(element('br'), element('span', { class: 'changed' }, `compared with what was pinned: ${signed(sum('parameters') - state.pinned.tree.reduce((total, row) => total + row.parameters, 0), count)} parameters, ${training && state.pinned.memory.training ? signed(training.peak - state.pinned.memory.training.peak, bytes) : ''} at the peak`));
        return list;
    }
    const signed = (change, text) => `${change < 0 ? '−' : '+'}${text(Math.abs(change))}`;

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
            bar.append(element('button', { type: 'button', 'aria-pressed': String(Boolean(state.pinned)), title: 'Pin this state, and show what edits change of it', onclick: () => { state.pinned = state.pinned ? undefined : model; render(); } }, 'Compare'));
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

    function render() {
        const root = document.getElementById('root');
        if (!state.model) {
            root.replaceChildren(element('p', { class: 'quiet', role: 'status' }, state.message));
            return;
        }
        const { model } = state;
        const focused = document.activeElement?.closest('.toolbar') ? document.activeElement.textContent : undefined;
        root.replaceChildren(
            element('header', {}, element('h1', {}, model.class), element('code', {}, model.example.expression), model.path ? element('span', { class: 'quiet' }, ` at ${model.path}`) : '', summary(), toolbar()),
            element('main', {}, model.example.error ? element('p', { class: 'error', role: 'alert' }, model.example.error) : '', state.tab === 'tree' ? tree() : element('div', { id: 'blocks' })),
        );
        if (state.tab === 'tree') renderTree();
        else renderBlocks();
        if (focused) [...root.querySelectorAll('.toolbar button')].find((button) => button.textContent === focused)?.focus();
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

    /** Items of each container: nodes, or groups of repeated calls. */
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
            items.set(String(node.id), { id: String(node.id), node, parent: String(parent), times: 1, members: [node.id] });
        }
        const children = new Map();
        for (const [parent, list] of inside) {
            const grouped = [];
            for (let place = 0; place < list.length; ) {
                const node = nodes[list[place]];
                let end = place + 1;
                const alike = (other) => node.kind === 'module' && other.kind === 'module' && node.path !== other.path && signatures.has(node.path) && signatures.get(node.path) === signatures.get(other.path) && node.shape === other.shape;
                while (end < list.length && alike(nodes[list[end]])) end += 1;
                if (end - place > 2) {
                    const id = `g${node.id}`;
                    const members = list.slice(place, end);
                    items.set(id, { id, node, parent: String(parent), times: members.length, members });
                    for (const member of members) items.get(String(member)).parent = id;
                    children.set(id, members.map(String));
                    grouped.push(id);
                } else {
                    grouped.push(...list.slice(place, end).map(String));
                }
                place = end;
            }
            children.set(String(parent), grouped);
        }
        return { items, children };
    }

    function renderBlocks() {
        const place = document.getElementById('blocks');
        if (!state.model.complete && !state.model.graph.nodes.length) {
            place.replaceChildren(element('p', { class: 'quiet', role: 'status' }, 'The picture is being drawn…'));
            return;
        }
        const { items, children } = hierarchy();
        // A class that is a part of another one is drawn without what is around it.
        const part = state.model.path ? state.model.graph.nodes.find((node) => node.kind === 'module' && node.path === state.model.path) : undefined;
        const root = part && String(part.id);
        const top = root ? [root] : children.get('-1') ?? [];
        const opened = (id) => children.has(id) && (state.blocks.get(id) ?? (root ? id === root : items.get(id).parent === '-1'));
        const shown = [];
        const list = (ids) => ids.forEach((id) => { shown.push(id); if (opened(id)) list(children.get(id)); });
        list(top);
        if (shown.length > MOST_BOXES) {
            const last = [...state.blocks.keys()].at(-1);
            if (last !== undefined && state.blocks.get(last)) {
                state.blocks.delete(last);
                renderBlocks();
                place.prepend(element('p', { class: 'quiet', role: 'status' }, `At most ${MOST_BOXES} boxes are drawn at a time: fold others first.`));
                return;
            }
        }
        const chains = new Map(); // of each node, the items around it, outermost first
        const chain = (id) => {
            if (!chains.has(id)) { const item = items.get(id); chains.set(id, [...(item.parent === '-1' ? [] : chain(item.parent)), id]); }
            return chains.get(id);
        };
        // Of each edge, the two items of one container that it joins; "in" and "out" for those that come from outside of the container.
        const links = new Map();
        const link = (container, from, to, edge) => {
            const key = `${container}|${from}|${to}`;
            if (!links.has(key)) links.set(key, { container, from, to, edge });
        };
        for (const edge of state.model.graph.edges) {
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
        const last = state.model.graph.nodes.at(-1);
        if (root) link('-1', root, 'out', { from: part.id });
        else if (last && !state.model.graph.edges.some((edge) => edge.from === last.id)) {
            chain(String(last.id)).forEach((id, at, way) => link(at ? way[at - 1] : '-1', id, 'out', { from: items.get(id).node.id }));
        }
        const byContainer = new Map();
        for (const each of links.values()) {
            if (!byContainer.has(each.container)) byContainer.set(each.container, []);
            byContainer.get(each.container).push(each);
        }
        const shape = (node) => (state.dims === 'names' ? node.shape : node.sizes);
        const layout = (ids, container) => {
            const parts = ids.map((id) => box(id));
            const starts = [];
            let y = GAP;
            for (const part of parts) { starts.push(y); y += part.height + GAP; }
            const at = new Map(ids.map((id, place) => [id, place]));
            const arcs = [];
            const straight = [];
            for (const each of byContainer.get(container) ?? []) {
                const from = each.from === 'in' ? -1 : at.get(each.from);
                const to = each.to === 'out' ? ids.length : at.get(each.to);
                if (from === undefined || to === undefined || to <= from) continue;
                (to === from + 1 ? straight : arcs).push({ ...each, from, to });
            }
            const labels = straight.map((each) => 2 * (7 * shape(state.model.graph.nodes[each.edge.from]).length + 8));
            const width = Math.max(60, ...parts.map((part) => part.width), ...labels);
            arcs.sort((one, other) => one.to - one.from - (other.to - other.from));
            const lanes = [];
            for (const arc of arcs) {
                let lane = lanes.findIndex((taken) => taken.every((other) => other.to <= arc.from || other.from >= arc.to));
                if (lane < 0) lane = lanes.push([]) - 1;
                lanes[lane].push(arc);
                arc.lane = lane;
            }
            const arcWidth = lanes.length ? LANE * lanes.length + PAD : 0;
            return { width: width + arcWidth, height: y, draw: (x, top) => {
                const drawn = [];
                const middle = x + width / 2;
                const bottomOf = (place) => (place < 0 ? top : top + starts[place] + parts[place].height);
                const topOf = (place) => (place >= ids.length ? top + y : top + starts[place]);
                const rightOf = (place) => (place < 0 || place >= ids.length ? middle : middle + parts[place].width / 2);
                parts.forEach((part, place) => drawn.push(...part.draw(middle - part.width / 2, top + starts[place])));
                for (const each of straight) {
                    drawn.push(element('svg:line', { class: 'edge', x1: middle, x2: middle, y1: bottomOf(each.from), y2: topOf(each.to) - 2, 'marker-end': 'url(#arrow)' }));
                    drawn.push(element('svg:text', { class: 'label', x: middle + 6, y: (bottomOf(each.from) + topOf(each.to)) / 2 + 4 }, shape(state.model.graph.nodes[each.edge.from])));
                }
                for (const arc of arcs) {
                    const lane = x + width + PAD + LANE * arc.lane;
                    const y1 = arc.from < 0 ? top + 6 : bottomOf(arc.from) - 8;
                    const y2 = arc.to >= ids.length ? top + y - 6 : topOf(arc.to) + 8;
                    drawn.push(element('svg:path', { class: 'edge', d: `M${rightOf(arc.from)},${y1} H${lane} V${y2} H${rightOf(arc.to) + 3}`, 'marker-end': 'url(#arrow)' },
                        element('svg:title', {}, shape(state.model.graph.nodes[arc.edge.from]))));
                }
                return drawn;
            } };
        };
        const box = (id) => {
            const item = items.get(id);
            const { node } = item;
            const isOpen_ = opened(id);
            const title = node.kind === 'module' ? `${node.path ? `${node.path.split('.').at(-1)} ` : ''}${node.label}${item.times > 1 ? ` ×${item.times}` : ''}` : node.label;
            const marks = { class: `box ${node.kind}${node.failure ? ' failed' : ''}`, tabindex: 0, role: children.has(id) ? 'button' : 'img', 'data-id': id,
                'aria-label': `${title}, ${shape(node)}${node.failure ? `, ${node.failure.message}` : ''}`, 'aria-expanded': children.has(id) ? String(isOpen_) : undefined };
            const act = (event) => {
                event.stopPropagation();
                if (children.has(id)) { state.blocks.delete(id); state.blocks.set(id, !isOpen_); keep(); renderBlocks(); document.querySelector(`[data-id="${CSS.escape(id)}"]`)?.focus(); }
                else reveal(node.call);
            };
            const onkeydown = (event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); act(event); } };
            const hover = element('svg:title', {}, [title, shape(node), node.failure?.message, children.has(id) ? 'click: unfold or fold' : 'click: go to the line'].filter(Boolean).join('\n'));
            if (isOpen_) {
                const inner = layout(children.get(id), id);
                const width = Math.max(inner.width + 2 * PAD, 7 * title.length + 2 * PAD);
                const height = inner.height + LINE + 4;
                return { width, height, draw: (x, y) => [element('svg:g', { ...marks, class: `${marks.class} open`, onclick: act, onkeydown },
                    hover, element('svg:rect', { x, y, width, height, rx: 4 }), element('svg:text', { class: 'title', x: x + PAD, y: y + LINE }, title)), ...inner.draw(x + (width - inner.width) / 2, y + LINE + 4)] };
            }
            const words = 7 * title.length;
            let [width, height] = [words + 24, node.kind === 'module' ? 28 : 22];
            const picture = node.dims[0];
            const scaled = state.scaled && picture?.length === 4 && picture.every(Boolean);
            if (scaled) [width, height] = [Math.max(14, Math.min(260, picture[3] * 1.2)), Math.max(10, Math.min(90, 8 * Math.log2(picture[1] + 1)))];
            // A name that the box has no room for stands beside it; the space is on both sides, so that boxes stay below each other.
            const beside = scaled && (width < words + 8 || height < LINE) ? words + 8 : 0;
            return { width: width + 2 * beside, height, draw: (x, y) => [element('svg:g', { ...marks, onclick: act, onkeydown }, hover,
                element('svg:rect', { x: x + beside, y, width, height, rx: node.kind === 'module' ? 4 : 11 }),
                element('svg:text', beside ? { class: 'title', x: x + beside + width + 6, y: y + height / 2 + 4 } : { class: 'title', x: x + width / 2, y: y + height / 2 + 4, 'text-anchor': 'middle' }, title))] };
        };
        const whole = layout(top, '-1');
        const svg = element('svg:svg', { role: 'group', 'aria-label': `Blocks of ${state.model.class}`, tabindex: 0, onkeydown: onPan, onwheel, onpointerdown: onDrag });
        svg.append(element('svg:defs', {}, element('svg:marker', { id: 'arrow', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: 'auto-start-reverse' }, element('svg:path', { class: 'head', d: 'M0,0 L8,4 L0,8 z' }))), ...whole.draw(PAD, 0));
        svg.dataset.width = whole.width + 2 * PAD;
        svg.dataset.height = whole.height;
        const failures = new Map(state.model.graph.nodes.filter((node) => node.failure).map(({ failure }) => [failure.message, failure]));
        place.replaceChildren(...[...failures.values()].map((failure) => element('p', { class: 'message' }, whatIsWrong(failure))), svg);
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
            // What is typed into is not taken away.
            const typing = ['INPUT', 'SELECT'].includes(document.activeElement?.tagName ?? '');
            // The box at which the keyboard is stays the one, in the new picture as well.
            const box = document.activeElement?.closest('#blocks [data-id]')?.dataset.id;
            if (!data.model.complete && state.model && !other) keepAmounts(data.model, state.model);
            state.model = data.model;
            // What was said of sizes was of the model before; where somebody has asked for that, the new one is asked, too.
            const wanted = other ? [] : [...prepared].filter((dim) => dim in data.model.example.dims);
            state.largest = {};
            prepared.clear();
            if (data.model.complete) wanted.forEach((dim) => { prepared.add(dim); askMemory(dim); });
            else wanted.forEach((dim) => prepared.add(dim));
            if (typing && !other && document.getElementById('root').querySelector('.toolbar')) {
                document.querySelector('header .totals')?.replaceWith(summary());
                if (state.tab === 'tree') renderTree();
                else renderBlocks();
            } else {
                const scrolled = document.querySelector('main')?.scrollTop ?? 0;
                const inTree = document.querySelector('#tree tbody')?.contains(document.activeElement);
                render();
                const main = document.querySelector('main');
                if (main && !other) main.scrollTop = scrolled;
                if (inTree) document.querySelector('#tree tbody tr[tabindex="0"]')?.focus();
            }
            if (box !== undefined) document.querySelector(`#blocks [data-id="${CSS.escape(box)}"]`)?.focus();
        } else if (data.type === 'memory') {
            const again = asking.get(data.dim);
            asking.delete(data.dim);
            if (again) askMemory(data.dim);
            if (!state.model || !data.memory) return;
            state.model = { ...state.model, memory: data.memory };
            if (data.largest !== null) state.largest[data.dim] = data.largest;
            document.querySelector('header .totals')?.replaceWith(summary());
        } else if (data.type === 'message') {
            state.model = undefined;
            state.message = data.text;
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
    if (held) state.model = JSON.parse(held.textContent);
    render();
    post({ type: 'ready', options: state.options });
})();
