// What comes from outside, and the beginning.
'use strict';

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
        const { flops, backward_flops, held_bytes, gradient_bytes, optimizer_bytes, kept_bytes, temporary_bytes } = rows.get(path) ?? row;
        Object.assign(row, { flops, backward_flops, held_bytes, gradient_bytes, optimizer_bytes, kept_bytes, temporary_bytes });
    }
    model.memory = before.memory;
}

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
