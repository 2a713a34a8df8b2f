// Tells the embedding page the height of this page, so that the frame needs no scrollbar. The
// message goes only to that page, and only on request.

let parentOrigin;
const root = document.documentElement;

function sendHeight() {
    if (parentOrigin) parent.postMessage({ centile: "height", height: Math.ceil(root.getBoundingClientRect().height) }, parentOrigin);
}

addEventListener("message", ({ source, origin, data }) => {
    if (source !== parent || data?.centile !== "height?") return;
    parentOrigin = origin;
    sendHeight();
});
new ResizeObserver(sendHeight).observe(root);
