// Makes a board's page live, and writes numbers and times as the reader's browser has them. Without it the page can be read all the same.

const whole = new Intl.NumberFormat(navigator.languages);
const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** Shows a whole number, which may be too large for a double, in an element. */
function write(element, number) {
    const data = element.querySelector("data") ?? element.appendChild(document.createElement("data"));
    data.value = String(number);
    data.textContent = whole.format(number);
}

for (const data of document.querySelectorAll("data[value]")) data.textContent = whole.format(BigInt(data.value));
for (const time of document.querySelectorAll("time[data-zone]")) {
    try {
        const format = new Intl.DateTimeFormat(navigator.languages, { dateStyle: "medium", timeStyle: "short", timeZone: time.dataset.zone });
        time.textContent = format.format(new Date(time.dateTime));
    } catch (_) {
        // A zone that this browser does not know: as the server wrote it.
    }
}

/** JSON whose scores keep all their digits, where the browser tells how a number was written. */
function parsed(text) {
    return JSON.parse(text, (name, value, context) => (name === "score" && context?.source ? BigInt(context.source) : value));
}

const find = (name) => document.querySelector(`[data-live="${name}"]`);

/** The page's own address with this player. */
function address(user) {
    const url = new URL(location.href);
    url.searchParams.set("player", user);
    url.hash = "";
    return url.pathname + url.search;
}

/** A row for a player. */
function line(row) {
    const tr = document.createElement("tr");
    tr.dataset.user = row.user_id;
    const cell = (kind, name) => {
        const cell = tr.appendChild(document.createElement(kind));
        cell.className = name;
        return cell;
    };
    cell("td", "rank");
    cell("td", "move");
    const name = cell("th", "name");
    name.scope = "row";
    // In a frame of another page's, rows lead nowhere.
    if (ranking.dataset.plain === undefined) {
        const link = name.appendChild(document.createElement("a"));
        link.href = address(row.user_id);
        link.title = row.user_id;
        link.appendChild(document.createElement("bdi"));
    } else {
        name.appendChild(document.createElement("bdi"));
    }
    cell("td", "score");
    return tr;
}

/** Milliseconds that a row moves for: it has come before the next event does. */
const MOVES_FOR = 200;

/** Where a row is seen in its table: on its way, if it still moves. */
function seenAt(tr) {
    const moved = tr.getAnimations().length > 0 ? new DOMMatrixReadOnly(getComputedStyle(tr).transform).m42 : 0;
    return tr.offsetTop + moved;
}

/** Shows these rows in a table; who moved is seen to move. */
function show(table, rows, marked) {
    const body = table.tBodies[0];
    table.hidden = rows.length === 0;
    const before = new Map([...body.rows].map((tr) => [tr.dataset.user, { tr, top: seenAt(tr), rank: Number(tr.querySelector(".rank data")?.value) }]));
    const now = rows.map((row) => {
        const known = before.get(row.user_id);
        const tr = known?.tr ?? line(row);
        write(tr.querySelector(".rank"), row.rank);
        write(tr.querySelector(".score"), row.score);
        tr.querySelector("bdi").textContent = row.user_name;
        if (row.user_id === marked) tr.setAttribute("aria-current", "true");
        const climbed = known ? known.rank - row.rank : 0;
        if (climbed !== 0 || !known) {
            const move = tr.querySelector(".move");
            move.textContent = known ? `${climbed > 0 ? "▲" : "▼"} ${whole.format(Math.abs(climbed))}` : "new";
            clearTimeout(move.fading);
            move.fading = setTimeout(() => (move.textContent = ""), 5000);
        }
        return tr;
    });
    const focused = document.activeElement;
    // Only what is elsewhere is moved: what stays keeps focus and place.
    now.forEach((tr, n) => {
        if (body.rows[n] !== tr) body.insertBefore(tr, body.rows[n] ?? null);
    });
    while (body.rows.length > now.length) body.lastElementChild.remove();
    if (focused?.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
    if (calm.matches) return;
    for (const tr of now) {
        const top = before.get(tr.dataset.user)?.top;
        if (top !== undefined && top !== tr.offsetTop) {
            tr.animate([{ transform: `translateY(${top - tr.offsetTop}px)` }, { transform: "none" }], { duration: MOVES_FOR, easing: "ease-out" });
        }
    }
}

/** Moves the mark of the player's place among all scores; the bars stay as they came. */
function place(score) {
    const mark = document.querySelector(".histogram line.here");
    const bars = [...document.querySelectorAll(".histogram rect")].map(({ dataset }) => [Number(dataset.from), Number(dataset.to)]);
    if (!mark || bars.length === 0) return;
    const isFalling = bars[0][0] > bars.at(-1)[1];
    const found = bars.findIndex(([, to]) => (isFalling ? score >= to : score <= to));
    const at = found < 0 ? bars.length - 1 : found;
    const [from, to] = bars[at];
    const into = from === to ? 0.5 : Math.min(Math.max((score - from) / (to - from), 0), 1);
    const x = ((at + into) * mark.ownerSVGElement.viewBox.baseVal.width) / bars.length;
    mark.setAttribute("x1", x);
    mark.setAttribute("x2", x);
}

/** What the page says of the connection. */
function tell(text, isLive = false) {
    const state = find("state");
    if (state.textContent !== text) state.textContent = text;
    state.classList.toggle("live", isLive);
}

const ranking = document.querySelector("[data-board]");
if (ranking) follow(ranking.dataset);

function follow({ board, period, limit, from, state, over }) {
    const player = document.querySelector("[data-player]")?.dataset.player ?? new URLSearchParams(location.search).get("player");
    const friends = find("friends");
    const isTop = from === "1";
    const query = new URLSearchParams({ period, limit: isTop ? limit : "1" });
    const chosen = new Set(new URLSearchParams(location.search).getAll("friends"));
    if (player) chosen.add(player);
    for (const user of chosen) query.append("users", user);

    const address = `/v1/boards/${encodeURIComponent(board)}/events?${query}`;
    const isLive = isTop && over === undefined;
    const words = over ?? (isTop ? "live" : "as it was when this page came");
    let hasCard = Boolean(document.querySelector("[data-player]"));

    /** What is shown is of now. */
    function live({ period }) {
        // Closed meanwhile: what the page says of it is another thing. A page of the last known top does not tell, nor does one of an older release.
        if (state !== undefined && period.state !== state) comeAgain();
        tell(words, isLive);
    }

    function shown({ period, players, scores, standings, missing }) {
        live({ period });
        write(find("players"), players);
        if (isTop && scores) {
            show(find("top"), scores, player);
            if (scores.length > 0) ranking.querySelector(".empty")?.remove();
        }
        for (const standing of standings) if (standing.user_id === player) card(standing);
        // Banned, erased or reset: the server has the rest.
        if (hasCard && missing.includes(player)) comeAgain();
        for (const user of missing) known.delete(user);
        if (friends && (standings.length > 0 || missing.length > 0)) circle(standings);
    }

    /** The player who is looked at. */
    function card(standing) {
        if (!hasCard) {
            // Came into the ranking while being looked at: the server has the rest.
            comeAgain();
            return;
        }
        write(find("rank"), standing.rank);
        write(find("score"), standing.score);
        place(Number(standing.score));
        find("percentile").textContent = new Intl.NumberFormat(navigator.languages, { maximumFractionDigits: 2 }).format(standing.percentile);
        show(find("around"), [...standing.above, standing, ...standing.below], player);
    }

    /** Friends, of whom these have changed. */
    const known = new Map();
    function circle(standings) {
        for (const standing of standings) if (friendIds.has(standing.user_id)) known.set(standing.user_id, standing);
        show(friends, [...known.values()].sort((a, b) => a.position - b.position), player);
    }
    const friendIds = new Set(new URLSearchParams(location.search).getAll("friends"));

    function overtaken({ overtaken }) {
        const log = find("log");
        for (const { player, by, new_rank: rank } of overtaken) {
            const p = log.appendChild(document.createElement("p"));
            p.textContent = `${by.user_name} passed ${player.user_name}, now ${whole.format(rank)}.`;
        }
        while (log.children.length > 20) log.firstElementChild.remove();
    }

    /** Asks for the page anew; soon, and not all who look at it in the same moment. */
    let coming;
    function comeAgain() {
        coming ??= setTimeout(() => location.reload(), 500 + Math.random() * 2500);
    }

    let source, again, wait = 1;

    /** Listens. A browser tries again by itself where nobody answers, not where it was told no: then this does, later and later. */
    function listen() {
        if (source || document.hidden) return;
        source = new EventSource(address);
        const on = (kind, act) => source.addEventListener(kind, (event) => act(parsed(event.data)));
        on("started", shown);
        on("changed", shown);
        on("continued", live);
        on("stale", () => tell("the database cannot be reached; this is what was last known"));
        // The name, the times and the list of periods are other ones.
        on("period", comeAgain);
        on("overtaken", overtaken);
        source.addEventListener("open", () => {
            wait = 1;
            tell(words, isLive);
        });
        source.addEventListener("error", () => {
            tell("reconnecting…");
            if (source.readyState !== EventSource.CLOSED) return;
            rest();
            again = setTimeout(listen, wait * 1000);
            wait = Math.min(wait * 2, 60);
        });
    }

    /** Listens no more: of a page that nobody sees a connection is kept from the others, of which a browser has six. */
    function rest() {
        clearTimeout(again);
        source?.close();
        source = undefined;
    }

    document.addEventListener("visibilitychange", () => (document.hidden ? rest() : listen()));
    addEventListener("pagehide", rest);
    addEventListener("pageshow", listen);
    listen();
}
