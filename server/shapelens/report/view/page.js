// The page around the tree and the picture: what is summed up, the toolbar, messages.
'use strict';

function summary() {
    const { model } = state;
    const sum = (key) => model.tree.reduce((total, row) => total + row[key], 0);
    const [forward, backward] = [sum('flops'), sum('backward_flops')];
    const parts = [model.complete || sum('parameters') ? `${count(sum('parameters'))} parameters` : '',
        forward ? `${prefixed(forward)}FLOPs forward${backward ? `, ${prefixed(backward)}FLOPs backward` : ''}` : ''];
    const { training, inference, uncounted } = model.memory;
    // What is below does not move when the memory is there: nobody misses what they were about to click on.
    const list = element('p', { class: model.complete ? 'totals' : 'totals counting' }, parts.filter(Boolean).join(' · '));
    if (!model.complete) list.append(element('span', { class: 'quiet' }, `${list.firstChild ? ' · ' : ''}memory is being counted…`));
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
    if (before && before.outerHTML !== now.outerHTML) before.replaceWith(now);
}
const signed = (change, text) => `${change < 0 ? '−' : '+'}${text(Math.abs(change))}`;

/** What the toolbar is made from: it stays while that does. */
const toolsOf = ({ others, example, memory, complete }) => JSON.stringify([complete || Boolean(state.pinned), state.tab, state.dims, state.amounts, state.scaled, state.options, state.limit, Boolean(state.pinned), others, example.expression, example.dims, memory.optimizer, memory.autocast]);
let tools = '';

function renderToolbar() {
    const before = document.querySelector('.toolbar');
    const wanted = toolsOf(state.model);
    const focused = before.contains(document.activeElement) ? document.activeElement : undefined;
    // What is typed into is not taken away.
    if (before.childNodes.length && (tools === wanted || focused?.tagName === 'INPUT')) return;
    tools = wanted;
    const name = (of) => of.getAttribute('aria-label') ?? of.textContent;
    settle(before, toolbar());
    if (focused && !focused.isConnected) [...before.querySelectorAll('button, select, input')].find((each) => name(each) === name(focused))?.focus();
}

/** What stands in the toolbar. What is done at a click is done with the state as it is then: the elements outlive the model that they were made for. */
function toolbar() {
    const { model } = state;
    const bar = [];
    const tab = (name, title) => element('button', { type: 'button', 'aria-pressed': String(state.tab === name), onclick: () => { state.tab = name; keep(); render(); } }, title);
    bar.push(tab('tree', 'Tree'), tab('blocks', 'Blocks'));
    bar.push(element('button', { type: 'button', 'aria-pressed': String(state.dims === 'numbers'), onclick: () => { state.dims = state.dims === 'names' ? 'numbers' : 'names'; keep(); render(); } }, 'Numbers'));
    if (state.tab === 'tree') {
        const memory = state.amounts === 'memory';
        bar.push(element('button', { type: 'button', 'aria-pressed': String(memory), title: 'What each module has of the memory of a training step', onclick: () => showAmounts(memory ? 'cost' : 'memory') }, 'Memory'));
        bar.push(element('input', { type: 'search', placeholder: 'Search', 'aria-label': 'Search modules', value: state.search, oninput: (event) => { state.search = event.target.value; keep(); renderTree(); },
            onkeydown: (event) => { if (event.key === 'ArrowDown') { event.preventDefault(); focusRow(state.focus); } } }));
    } else {
        bar.push(element('button', { type: 'button', onclick: fit }, 'Fit'),
            element('button', { type: 'button', 'aria-label': 'Zoom in', onclick: () => zoom(0.8) }, '+'), element('button', { type: 'button', 'aria-label': 'Zoom out', onclick: () => zoom(1.25) }, '−'),
            element('button', { type: 'button', 'aria-pressed': String(state.scaled), title: 'Draw pictures with their size and channels to scale', onclick: () => { state.scaled = !state.scaled; state.box = undefined; keep(); render(); } }, 'To scale'));
    }
    if (host) {
        if (model.others.length) {
            const examples = [...model.others];
            examples.splice(state.options.example ?? 0, 0, model.example.expression);
            bar.push(element('select', { 'aria-label': 'Example', onchange: (event) => { state.options.example = Number(event.target.value); state.options.sizes = {}; ask(); } },
                examples.map((expression, place) => element('option', { value: place, selected: expression === model.example.expression }, expression))));
        }
        for (const [name, size] of Object.entries(model.example.dims)) bar.push(sizeInput(name, state.options.sizes[name] ?? size));
        if (Object.keys(model.example.dims).length) {
            bar.push(element('label', { title: 'The largest sizes with which a training step fits this memory' }, 'fits ', element('input', { type: 'number', min: 0, step: 'any', 'aria-label': 'Memory in GB', value: state.limit, onchange: (event) => { state.limit = Number(event.target.value) || 0; keep(); state.largest = {}; Object.keys(state.model.example.dims).forEach(askMemory); render(); } }), ' GB'));
        }
        const optimizers = [...new Set([model.memory.optimizer, 'SGD', 'momentum', 'Adam', 'AdamW', 'Adafactor', 'Adam8bit', 'AdamW8bit'])];
        bar.push(element('select', { 'aria-label': 'Optimizer', onchange: (event) => { state.options.optimizer = event.target.value; ask(); } },
            optimizers.map((name) => element('option', { value: name, selected: name === model.memory.optimizer }, name))));
        const precisions = { none: 'no autocast', bfloat16: 'autocast bfloat16', float16: 'autocast float16' };
        bar.push(element('select', { 'aria-label': 'Autocast', onchange: (event) => { state.options.autocast = event.target.value; ask(); } },
            Object.entries(precisions).map(([value, title]) => element('option', { value, selected: value === (model.memory.autocast ?? 'none') }, title))));
        bar.push(element('button', { type: 'button', 'aria-pressed': String(Boolean(state.pinned)), disabled: !model.complete && !state.pinned, title: 'Pin this state, and show what edits change of it', onclick: () => { state.pinned = state.pinned ? undefined : state.model; render(); } }, 'Compare'));
        bar.push(element('button', { type: 'button', onclick: () => post({ type: 'markdown', amounts: state.amounts }) }, 'Copy as Markdown'));
        bar.push(element('button', { type: 'button', onclick: () => post({ type: 'save', kind: 'html' }) }, 'Save as HTML'));
    }
    if (state.tab === 'blocks') {
        const save = (kind, content) => (host ? post({ type: 'save', kind, content }) : download(`model.${kind}`, content));
        bar.push(element('button', { type: 'button', onclick: () => save('svg', `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText())}`) }, 'Save as SVG'),
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
    for (const input of [number, slider]) for (const nearing of ['focus', 'pointerenter']) input.addEventListener(nearing, prepare);
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

const exampleButton = (name) => element('button', { type: 'button', 'data-class': name, onclick: () => post({ type: 'example', class: name }) }, 'Set an example…');

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
        settle(root, [
            element('p', { class: 'message quiet', role: 'status' }, state.message),
            element('p', { class: 'message' }, state.withoutExample ? exampleButton(state.withoutExample) : ''),
        ]);
        return;
    }
    if (!root.querySelector('main')) {
        root.replaceChildren(
            element('header', {}, element('h1'), element('code'), element('span', { class: 'quiet' }), element('div', { class: 'toolbar', role: 'toolbar', 'aria-label': 'View' }), element('p', { class: 'totals' }), element('p', { class: 'note quiet', role: 'status', hidden: true })),
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
    const { tab, dims, sort, heat, amounts, search, scaled, limit, options } = state;
    host?.setState({ tab, dims, sort, heat, amounts, search, scaled, limit, options, open: [...state.open], blocks: [...state.blocks] });
}
const download = (name, url) => element('a', { href: url, download: name }).click();
