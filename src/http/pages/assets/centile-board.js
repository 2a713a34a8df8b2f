// <centile-board board="arena" period="week" segment="country:DE" limit="10" theme="auto" size="normal"></centile-board>
// embeds a board in any page: in a frame from the service that served this script, or from the one
// in `src`.

const OPTIONS = ["period", "segment", "limit", "theme", "size"];
const HEIGHT_MAX_PX = 20_000;

class CentileBoard extends HTMLElement {
    static observedAttributes = ["board", "src", "title", ...OPTIONS];

    #frame;
    #origin;
    #height = "20rem";
    #isPending = false;

    connectedCallback() {
        addEventListener("message", this);
        this.attributeChangedCallback();
    }

    disconnectedCallback() {
        removeEventListener("message", this);
        this.#frame?.remove();
        this.#frame = undefined;
    }

    // Creates one frame for attributes that change together.
    attributeChangedCallback() {
        if (this.#isPending) return;
        this.#isPending = true;
        queueMicrotask(() => {
            this.#isPending = false;
            if (this.isConnected) this.#show();
        });
    }

    // Accepts messages only from the frame's own page, and only while it belongs to the service.
    handleEvent({ source, origin, data }) {
        if (!this.#frame || source !== this.#frame.contentWindow || origin !== this.#origin) return;
        if (data?.centile !== "height" || !(data.height > 0 && data.height <= HEIGHT_MAX_PX)) return;
        this.#frame.style.height = this.#height = `${data.height}px`;
    }

    #show() {
        this.#frame?.remove();
        const board = this.getAttribute("board");
        if (!board) return;
        const url = new URL(`/embed/${encodeURIComponent(board)}`, this.getAttribute("src") || import.meta.url);
        for (const name of OPTIONS) if (this.hasAttribute(name)) url.searchParams.set(name, this.getAttribute(name));
        this.#origin = url.origin;
        // A new frame each time: a new URL in the same frame would add an entry to the page's
        // history.
        const frame = (this.#frame = document.createElement("iframe"));
        frame.title = this.title || `Leaderboard ${board}`;
        frame.loading = "lazy";
        frame.sandbox = "allow-scripts allow-same-origin allow-popups allow-popups-to-escape-sandbox";
        Object.assign(frame.style, { display: "block", width: "100%", height: this.#height, border: "0" });
        frame.addEventListener("load", () => frame.contentWindow?.postMessage({ centile: "height?" }, url.origin));
        frame.src = url.href;
        this.append(frame);
    }
}

if (!customElements.get("centile-board")) customElements.define("centile-board", CentileBoard);
