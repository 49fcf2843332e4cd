// What comes from outside, and the beginning.
'use strict';

/** A model without a graph keeps the one that was seen before. */
function keepGraph(model, before) {
    if (model.graph.nodes.length) return;
    const now = rowsByPath(model);
    // What failed before is not said to fail now.
    const still = (node) => !node.failure || now.get(node.path)?.failure?.message === node.failure.message;
    model.graph = { ...before.graph, nodes: before.graph.nodes.map((node) => (still(node) ? node : { ...node, failure: null })) };
}

/** Whether the constructor of a model failed: the roots are then those modules that were made before, as of a half-typed line. */
const isUnbuilt = (model, before) => Boolean(model.example.error) && model.tree[0]?.class !== before.tree[0]?.class;

/** Operations, memory and graph that are still to come are shown as they were before an edit. */
function keepAmounts(model, before) {
    const rows = rowsByPath(before);
    const now = rowsByPath(model);
    keepGraph(model, before);
    for (const [path, row] of now) {
        const { flops, backward_flops, held_bytes, gradient_bytes, optimizer_bytes, kept_bytes, temporary_bytes } = rows.get(path) ?? row;
        Object.assign(row, { flops, backward_flops, held_bytes, gradient_bytes, optimizer_bytes, kept_bytes, temporary_bytes });
    }
    model.memory = before.memory;
}

/** Say why there is nothing new of the model that is shown, which stays. */
function keepShown(reason) {
    state.note = `${reason}. This is what was seen of it before.`;
    render();
}

window.addEventListener('message', ({ data }) => {
    if (data.type === 'model') {
        const other = state.model && (state.model.class !== data.model.class || state.model.file !== data.model.file);
        if (other) { state.options.example = 0; state.options.sizes = {}; }
        if (other) { state.pinned = undefined; state.box = undefined; state.open.clear(); state.blocks.clear(); }
        if (state.model && !other) {
            if (isUnbuilt(data.model, state.model)) {
                keepShown(data.model.example.error);
                return;
            }
            if (!data.model.complete) keepAmounts(data.model, state.model);
            else if (data.model.example.error) keepGraph(data.model, state.model);
        }
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
        state.message = data.text;
        state.withoutExample = data.withoutExample ?? '';
        if (data.same && state.model) {
            keepShown(data.text);
            return;
        }
        state.model = undefined;
        state.note = '';
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
