// The view of a model as a whole: in VS Code's webview, where the extension posts what is to be shown, and in an exported file, which holds it.
// Strings of the user's code only ever become text nodes. The model is as model.schema.json describes it.
// These files are read in the order of scripts.json, and share their names. Here is what is shown, and what the user has chosen.
'use strict';

const host = typeof acquireVsCodeApi === 'function' ? acquireVsCodeApi() : undefined;
const state = {
    model: undefined,
    message: 'Waiting for the model…',
    withoutExample: '', // the class of which the message is, where an example would help
    note: '', // why what is shown is of an older text
    tab: 'tree',
    dims: 'names',
    sort: { key: '', down: true },
    heat: 'parameters',
    amounts: 'cost', // or 'memory': what the columns are
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
