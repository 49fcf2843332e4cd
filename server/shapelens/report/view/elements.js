// How numbers are written, and how elements are made and changed.
'use strict';

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
/** Give an element these children. Those that it has already stay, so that nobody clicks into nothing: a click needs the element under it from press to release. */
function settle(of, children) {
    const before = [...of.children];
    const fields = (each) => [...each.querySelectorAll('input, select')].map(({ value }) => value).join('\n');
    const alike = (one, other) => one.isEqualNode(other) && one.value === other.value && fields(one) === fields(other);
    let next = of.firstChild;
    for (const child of children) {
        const place = before.findIndex((each) => alike(each, child));
        const [kept] = place < 0 ? [child] : before.splice(place, 1);
        if (kept === next) next = next.nextSibling;
        else of.insertBefore(kept, next);
    }
    before.forEach((each) => each.remove());
}
const post = (message) => host?.postMessage(message);
const reveal = (place) => place && post({ type: 'reveal', place });
