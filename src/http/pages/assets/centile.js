// Makes a board's page live, counts down to the end of the period, and formats numbers for the
// browser's language. The page can be read without it.

const whole = new Intl.NumberFormat(navigator.languages);
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

/**
 * Formats a whole number in the format of a board's scores: "number", "decimal:2", "duration:ms" or
 * "duration:s", and a unit after a space. The server's ScoreFormat does the same in English.
 */
function formatted(number, format) {
    if (!format) return whole.format(number);
    const [kind, ...unit] = format.split(" ");
    const [name, detail] = kind.split(":");
    const text = String(number);
    const sign = text.startsWith("-") ? "-" : "";
    const digits = text.slice(sign.length);
    if (name === "duration") {
        const count = BigInt(digits);
        const [all, fraction] = detail === "ms" ? [count / 1000n, "." + String(count % 1000n).padStart(3, "0")] : [count, ""];
        const two = (part) => String(part).padStart(2, "0");
        const [hours, minutes, seconds] = [all / 3600n, (all / 60n) % 60n, all % 60n];
        const start = hours > 0n ? `${whole.format(hours)}:${two(minutes)}` : String(minutes);
        return (sign && "\u2212") + start + ":" + two(seconds) + fraction;
    }
    const places = name === "decimal" ? Number(detail) : 0;
    const padded = digits.padStart(places + 1, "0");
    const exact = places > 0 ? `${sign}${padded.slice(0, -places)}.${padded.slice(-places)}` : text;
    // A text keeps all digits.
    const numbers = new Intl.NumberFormat(navigator.languages, { minimumFractionDigits: places, maximumFractionDigits: places });
    return [numbers.format(exact), ...unit].join(" ");
}

/** Writes a whole number into an element. It may be too large for a double. */
function write(element, number, format) {
    const data = element.querySelector("data") ?? element.appendChild(document.createElement("data"));
    if (format) data.dataset.format = format;
    data.value = String(number);
    data.textContent = formatted(number, data.dataset.format);
}

for (const data of document.querySelectorAll("data[value]")) data.textContent = formatted(BigInt(data.value), data.dataset.format);

/** Formats a number of seconds with its two largest units. */
function left(seconds) {
    const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
    if (days > 0) return `${days} d ${hours} h`;
    if (hours > 0) return `${hours} h ${minutes} min`;
    return minutes > 0 ? `${minutes} min` : `${seconds} s`;
}

for (const countdown of document.querySelectorAll("[data-ends]")) {
    const ends = Date.parse(countdown.dataset.ends);
    const show = () => {
        const seconds = Math.round((ends - Date.now()) / 1000);
        // The reader's clock may be wrong: the state beside it says whether the period has ended.
        const text = seconds > 0 ? `ends in ${left(seconds)}` : "";
        if (countdown.textContent !== text) countdown.textContent = text;
    };
    show();
    countdown.hidden = false;
    setInterval(show, 1000);
}

// Labels of charts are text of a drawing.
for (const label of document.querySelectorAll("text[data-value]")) label.textContent = formatted(BigInt(label.dataset.value), label.dataset.format);

/** Parses JSON without rounding scores, if the browser gives access to the source text of numbers. */
function parsed(text) {
    return JSON.parse(text, (name, value, context) => (/^(score|tiebreak)$/.test(name) && context?.source ? BigInt(context.source) : value));
}

const find = (name) => document.querySelector(`[data-live="${name}"]`);

/** Returns the URL of this page with another player. */
function address(user) {
    const url = new URL(location.href);
    url.searchParams.set("player", user);
    url.searchParams.delete("search");
    url.hash = "";
    return url.pathname + url.search;
}

/** Creates a row for a player. */
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
    // Rows in a frame have no links.
    if (ranking.dataset.plain === undefined) {
        name.append(span("", { class: "avatar", "aria-hidden": "true" }));
        const link = name.appendChild(document.createElement("a"));
        link.href = address(row.user_id);
        link.title = row.user_id;
        link.appendChild(document.createElement("bdi"));
    } else {
        name.appendChild(document.createElement("bdi"));
    }
    cell("td", "score");
    if (row.tiebreak !== undefined) cell("td", "tiebreak");
    return tr;
}

/** Creates a text with a class or an attribute. */
function span(text, attributes) {
    const span = document.createElement("span");
    for (const [name, value] of Object.entries(attributes)) span.setAttribute(name, value);
    span.textContent = text;
    return span;
}

/** Shows how far a player has moved since the snapshot, with the elements that the server uses. */
function compare(tr, position) {
    const move = tr.querySelector(".move");
    const { before } = tr.dataset;
    // Not known yet, or not in the snapshot.
    if (!before) {
        move.textContent = before === undefined ? "" : "new";
        return;
    }
    const gained = Number(before) - position;
    const [kind, sign, word] = gained > 0 ? ["up", "▲", "up"] : gained < 0 ? ["down", "▼", "down"] : ["same", "=", "unchanged"];
    const all = span("", { class: kind });
    all.append(span(sign, { "aria-hidden": "true" }), span(word, { class: "unseen" }));
    if (gained !== 0) {
        all.append(" ");
        write(all, Math.abs(gained));
    }
    move.replaceChildren(all);
}

/** Shows a player's tier behind the name, or none. */
function showTier(element, tier) {
    element.querySelector(".tier")?.remove();
    if (tier) element.append(span(` ${tier}`, { class: "tier" }));
}

let isLookingUp = false;

/**
 * Looks up players who have entered the table in its snapshot, after a short random delay, so that
 * not all open pages ask at once.
 */
function lookUp(table) {
    if (isLookingUp) return;
    isLookingUp = true;
    const unknown = () => [...table.tBodies[0].rows].filter((tr) => tr.dataset.before === undefined);
    setTimeout(async () => {
        const query = new URLSearchParams({ period: table.dataset.since });
        const rows = unknown();
        for (const tr of rows) query.append("user_id", tr.dataset.user);
        // After a failure, the next event tries again, unless the snapshot's archive is gone.
        const response = rows.length > 0 ? await fetch(`/v1/boards/${encodeURIComponent(ranking.dataset.board)}/scores/query?${query}`).catch(() => undefined) : undefined;
        if (response?.ok) {
            const found = new Map((await response.json()).data.map(({ user_id: user, position }) => [user, position]));
            for (const tr of rows) {
                tr.dataset.before = found.get(tr.dataset.user) ?? "";
                compare(tr, Number(tr.dataset.position));
            }
        }
        isLookingUp = response?.status === 404;
        if (response?.ok && unknown().length > 0) lookUp(table);
    }, 500 + Math.random() * 1500);
}

/** Writes a player's rank, name, avatar, tier and score into a row. */
function fill(tr, row, format) {
    write(tr.querySelector(".rank"), row.rank);
    write(tr.querySelector(".score"), row.score, format);
    if (row.tiebreak !== undefined) write(tr.querySelector(".tiebreak"), row.tiebreak);
    tr.querySelector("bdi").textContent = row.name;
    showTier(tr.querySelector(".name"), row.tier);
    const avatar = tr.querySelector(".avatar");
    if (avatar) showAvatar(avatar, row);
}

const origins = document.querySelector("[data-avatars]")?.dataset.avatars.split(" ") ?? [];
// Not in every browser.
const letters = Intl.Segmenter && new Intl.Segmenter();
const firstLetter = (word) => (letters ? [...letters.segment(word)][0].segment : [...word][0]);

/** Shows a player's picture over the initials, as the server does. */
function showAvatar(avatar, { name, avatar_url: url }) {
    const initials = name.split(/\s+/).filter(Boolean).map(firstLetter);
    if (initials.length > 2) initials.splice(1, initials.length - 2);
    avatar.dataset.initials = initials.join("").toUpperCase();
    const picture = avatar.querySelector("img");
    const isWithin = (origin) => origin === "*" || (origin && url.startsWith(origin) && ["", "/", "?", "#"].includes(url.charAt(origin.length)));
    const isAllowed = url && origins.some(isWithin);
    if (!isAllowed) picture?.remove();
    else if (picture?.getAttribute("src") !== url) {
        const image = new Image(28, 28);
        image.alt = "";
        image.src = url;
        avatar.replaceChildren(image);
    }
}

/** Duration of a row's move in milliseconds, shorter than the time to the next event. */
const MOVE_MS = 200;

/** Returns the current vertical position of a row, which may be moving. */
function currentTop(tr) {
    const moved = tr.getAnimations().length > 0 ? new DOMMatrixReadOnly(getComputedStyle(tr).transform).m42 : 0;
    return tr.offsetTop + moved;
}

/** Shows rows in a table and animates changed positions. */
function show(table, rows, marked) {
    const body = table.tBodies[0];
    table.hidden = rows.length === 0;
    const before = new Map([...body.rows].map((tr) => [tr.dataset.user, { tr, top: currentTop(tr), rank: Number(tr.querySelector(".rank data")?.value) }]));
    const now = rows.map((row) => {
        const known = before.get(row.user_id);
        const tr = known?.tr ?? line(row);
        fill(tr, row, table.dataset.format);
        if (row.user_id === marked) tr.setAttribute("aria-current", "true");
        const climbed = known ? known.rank - row.rank : 0;
        if (table.dataset.since) {
            tr.dataset.position = row.position;
            compare(tr, row.position);
        } else if (climbed !== 0 || !known) {
            const move = tr.querySelector(".move");
            move.textContent = known ? `${climbed > 0 ? "▲" : "▼"} ${whole.format(Math.abs(climbed))}` : "new";
            clearTimeout(move.fading);
            move.fading = setTimeout(() => (move.textContent = ""), 5000);
        }
        return tr;
    });
    const focused = document.activeElement;
    // Insert only rows that are elsewhere: the others keep focus and position.
    now.forEach((tr, n) => {
        if (body.rows[n] !== tr) body.insertBefore(tr, body.rows[n] ?? null);
    });
    while (body.rows.length > now.length) body.lastElementChild.remove();
    if (table.tFoot) table.tFoot.hidden = rows.some((row) => row.user_id === marked);
    if (table.dataset.since && now.some((tr) => tr.dataset.before === undefined)) lookUp(table);
    if (focused?.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
    if (reducedMotion.matches) return;
    for (const tr of now) {
        const top = before.get(tr.dataset.user)?.top;
        if (top !== undefined && top !== tr.offsetTop) {
            tr.animate([{ transform: `translateY(${top - tr.offsetTop}px)` }, { transform: "none" }], { duration: MOVE_MS, easing: "ease-out" });
        }
    }
}

/** Moves the mark of the player's score in the histogram. The bars stay as loaded. */
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

/** Shows the state of the connection. */
function showState(text, isLive = false) {
    const state = find("state");
    if (state.textContent !== text) state.textContent = text;
    state.classList.toggle("live", isLive);
}

const ranking = document.querySelector("[data-board]");
if (ranking) follow(ranking.dataset);

function follow({ board, period, segment, limit, from, state, over }) {
    const player = document.querySelector("[data-player]")?.dataset.player ?? new URLSearchParams(location.search).get("player");
    const friends = find("friends");
    const isTop = from === "1";
    const query = new URLSearchParams({ period, limit: isTop ? limit : "1" });
    if (segment) query.set("segment", segment);
    const chosen = new Set(new URLSearchParams(location.search).getAll("friends"));
    if (player) chosen.add(player);
    for (const user of chosen) query.append("user_id", user);

    const address = `/v1/boards/${encodeURIComponent(board)}/live?${query}`;
    const isLive = isTop && over === undefined;
    const words = over ?? (isTop ? "live" : "as of page load");
    let hasCard = Boolean(document.querySelector("[data-player]"));

    /** Shows that the data are current. */
    function live({ period }) {
        // The period was closed: load the page again, because other parts of it change. A page with
        // stale rows, or of an older release, has no state to compare.
        if (state !== undefined && period.state !== state) reloadSoon();
        showState(words, isLive);
    }

    function shown({ period, players, scores, standings, missing }) {
        live({ period });
        write(find("players"), players);
        if (isTop && scores) {
            show(find("top"), scores, player);
            if (scores.length > 0) ranking.querySelector(".empty")?.remove();
        }
        for (const standing of standings) if (standing.user_id === player) card(standing);
        // Banned, erased or reset: load the page again for the rest.
        if (hasCard && missing.includes(player)) reloadSoon();
        for (const user of missing) known.delete(user);
        if (friends && (standings.length > 0 || missing.length > 0)) showFriends(standings);
    }

    /** Updates the selected player. */
    function card(standing) {
        if (!hasCard) {
            // The player's first score: load the page again for the rest.
            reloadSoon();
            return;
        }
        write(find("rank"), standing.rank);
        showTier(find("tier"), standing.tier);
        const top = find("top");
        if (top?.tFoot) fill(top.tFoot.rows[0], standing, top.dataset.format);
        write(find("score"), standing.score);
        if (standing.tiebreak !== undefined) write(find("tiebreak"), standing.tiebreak);
        place(Number(standing.score));
        find("percentile").textContent = new Intl.NumberFormat(navigator.languages, { maximumFractionDigits: 2 }).format(standing.percentile);
        show(find("around"), [...standing.above, standing, ...standing.below], player);
        const decided = find("decided");
        // Compares rounded numbers, because some browsers round those of messages.
        const isShown = standing.reached_at
            ? decided?.dataset.by === standing.reached_at
            : decided?.dataset.by.split(" ").every((value, at) => Number(value) === Number([standing.score, standing.tiebreak][at]));
        // After a short random delay, so that not all open pages ask at once. If that fails, the next
        // score tries again.
        if (decided && !isShown) renewing ??= setTimeout(renewDecided, 500 + Math.random() * 1500);
    }

    /** Writes the time and the metadata of the selected player's entry, which only the page has. */
    let renewing;
    async function renewDecided() {
        const answer = await fetch(location.href).catch(() => undefined);
        renewing = undefined;
        if (!answer?.ok) return;
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const found = page.querySelector('[data-live="decided"]');
        if (found) find("decided").replaceWith(found);
    }

    /** Updates friends with changes. */
    const known = new Map();
    function showFriends(standings) {
        for (const standing of standings) if (friendIds.has(standing.user_id)) known.set(standing.user_id, standing);
        show(friends, [...known.values()].sort((a, b) => a.position - b.position), player);
    }
    const friendIds = new Set(new URLSearchParams(location.search).getAll("friends"));

    function overtaken({ overtaken }) {
        const log = find("log");
        for (const { player, by, new_rank: rank } of overtaken) {
            const p = log.appendChild(document.createElement("p"));
            p.textContent = `${by.name} passed ${player.name}, now ${whole.format(rank)}.`;
        }
        while (log.children.length > 20) log.firstElementChild.remove();
    }

    /** Reloads the page after a short random delay, so that not all open pages reload at once. */
    let reloading;
    function reloadSoon() {
        reloading ??= setTimeout(() => location.reload(), 500 + Math.random() * 2500);
    }

    let source, retry, wait = 1;

    /**
     * Connects. The browser reconnects on its own after a lost connection, but not after an error
     * response. Then this function retries with growing delays.
     */
    function listen() {
        if (source || document.hidden) return;
        source = new EventSource(address);
        const on = (kind, act) => source.addEventListener(kind, (event) => act(parsed(event.data)));
        on("started", shown);
        on("changed", shown);
        on("continued", live);
        on("stale", () => showState("the database cannot be reached; the data may be out of date"));
        // Title, times and the list of periods have changed.
        on("period", reloadSoon);
        on("overtaken", overtaken);
        source.addEventListener("open", () => {
            wait = 1;
            showState(words, isLive);
        });
        source.addEventListener("error", () => {
            showState("reconnecting…");
            if (source.readyState !== EventSource.CLOSED) return;
            disconnect();
            retry = setTimeout(listen, wait * 1000);
            wait = Math.min(wait * 2, 60);
        });
    }

    /**
     * Disconnects. A hidden page leaves its connection to other pages: a browser opens only six
     * per host.
     */
    function disconnect() {
        clearTimeout(retry);
        source?.close();
        source = undefined;
    }

    document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : listen()));
    addEventListener("pagehide", disconnect);
    addEventListener("pageshow", listen);
    listen();
}
