// Timeline: past and future of jobs on one axis.

import { calm, h, put, s } from "./dom.js";
import { get } from "./net.js";
import { MARKS, chip, empty, files, jobLink, pager, shape, show } from "./parts.js";
import * as time from "./time.js";

const HOUR = 3_600_000;
const ZOOMS = [["Hour", HOUR], ["6 hours", 6 * HOUR], ["Day", 24 * HOUR], ["Week", 168 * HOUR], ["Month", 720 * HOUR]];
const TALL = 34;

export async function timeline(context) {
  const given = (name) => context.params.get(name);
  const state = {
    span: ZOOMS.find(([, span]) => String(span / HOUR) === given("hours"))?.[1] || ZOOMS[1][1],
    // Where the axis begins; none while it follows the clock.
    from: given("from") ? Date.parse(given("from")) : null,
    search: given("search") || "", offset: Number(given("offset")) || 0,
  };
  let said = null;
  // Which mark of which row is pointed at, and how to point at it again once the rows are drawn anew.
  let pointed = null;
  const again = new Map();
  const rows = h("div", { class: "timeline" });
  const below = h("div");
  const tip = h("div", { class: "tip", role: "status", "aria-live": "polite", hidden: true });
  const zooms = h("div", { class: "tools", role: "group", "aria-label": "How much is shown" });
  const range = h("p", { class: "hint range" });
  const search = h("input", { type: "search", id: "search", value: state.search, autocomplete: "off", oninput: calm(200, () => { Object.assign(state, { search: search.value.trim(), offset: 0 }); look(); }) });
  const step = (words, label, way) => h("button", { type: "button", "aria-label": label, onclick: () => { state.from = axis().from + way * state.span / 2; look(); } }, words);
  const legend = h("p", { class: "legend" }, h("span", { class: "key window" }), "window", ["planned", "running", "succeeded", "retrying", "failed", "skipped", "missed"].map((mark) => chip(mark)));
  const node = h("div", {},
    h("div", { class: "head" }, h("h1", {}, "Timeline"), zooms),
    h("div", { class: "filter" }, h("label", { for: "search" }, "Name has"), search,
      h("div", { class: "tools" }, step("←", "Earlier", -1), h("button", { type: "button", onclick: () => { state.from = null; look(); } }, "Now"), step("→", "Later", 1)),
      range, h("div", { class: "tools" }, files("timeline", () => params(), "timeline"), h("button", { type: "button", class: "quiet", onclick: calendar }, "iCal"))),
    h("div", { class: "card flush" }, rows), below, legend, tip);

  async function calendar() {
    const { save } = await import("./net.js");
    save("schedule.ics", {}, "kron.ics");
  }

  function axis() {
    const from = state.from ?? time.now() - state.span / 3;
    return { from, to: from + state.span };
  }
  const params = () => {
    const { from, to } = axis();
    return { from: new Date(from).toISOString(), to: new Date(to).toISOString(), search: state.search, offset: state.offset, limit: 25 };
  };

  function drawZooms() {
    put(zooms, ZOOMS.map(([words, span]) => h("button", { type: "button", "data-key": words, "aria-pressed": String(span === state.span), onclick: () => {
      if (state.from !== null) state.from += (state.span - span) / 3;
      state.span = span;
      look();
    } }, words)));
  }

  function look() {
    const query = new URLSearchParams({ hours: state.span / HOUR, search: state.search, offset: state.offset });
    if (state.from !== null) query.set("from", new Date(state.from).toISOString());
    context.go(`/timeline?${query}`, { quietly: true });
    drawZooms();
    return refresh().catch((error) => { leave(); show(rows, error, look); });
  }

  async function refresh() {
    said = await get("timeline", params());
    time.set(said.now);
    draw();
  }

  function draw() {
    if (!said) return;
    range.textContent = `${time.short(said.from)} to ${time.short(said.to)} (${time.HERE})`;
    if (!said.total) {
      leave();
      put(below);
      return put(rows, empty(state.search ? `No job has “${state.search}” in its name.` : "There are no jobs yet."));
    }
    // Names stand above their rows where there is no room beside them.
    const whole = rows.clientWidth || 900;
    const width = whole < 640 ? whole - 16 : whole - 232;
    const [from, to] = [Date.parse(said.from), Date.parse(said.to)];
    const x = (at) => ((Date.parse(at) - from) / (to - from)) * width;
    const changes = said.changes.map((change) => s("path", { class: "clock-change", d: `M${x(change.at)} 0V${TALL}` }, s("title", {}, changeWords(change))));
    const present = s("path", { class: "present", d: `M${x(said.now)} 0V${TALL}` });
    const kept = pointed;
    again.clear();
    put(rows,
      h("div", { class: "trow axis-row", "aria-hidden": "true" }, h("div", { class: "tname" }), axisPicture(from, to, width, x)),
      said.rows.map((row) => h("div", { class: "trow" },
        h("div", { class: "tname" }, jobLink(row.id, row.name), row.paused && [" ", chip("paused")]),
        rowPicture(row, width, x, [changes.map((line) => line.cloneNode(true)), present.cloneNode()]))));
    if (kept && again.has(kept.row)) again.get(kept.row)(kept.key);
    else leave();
    put(below,
      said.changes.length ? h("ul", { class: "notes" }, said.changes.map((change) => h("li", {}, h("span", { class: "key clock" }), changeWords(change)))) : null,
      pager(said, (offset) => { state.offset = offset; look(); }));
  }

  /** Nothing is pointed at any more. */
  function leave() {
    pointed = null;
    tip.hidden = true;
  }

  function changeWords(change) {
    return `Clocks change in ${change.zone}: ${time.short(change.at)}, from ${change.before} to ${change.after}`;
  }

  function axisPicture(from, to, width, x) {
    const steps = [5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7200].map((minutes) => minutes * 60_000);
    const every = steps.find((step) => ((to - from) / step) * 74 <= width) || steps.at(-1);
    // Marks are at round local times.
    const shift = new Date(from).getTimezoneOffset() * 60_000;
    const marks = [];
    for (let at = Math.ceil((from - shift) / every) * every + shift; at < to; at += every) {
      const place = x(new Date(at).toISOString());
      marks.push(s("path", { class: "grid-line", d: `M${place} 18v8` }), s("text", { class: "axis", x: place, y: 13, "text-anchor": "middle" }, every >= 24 * HOUR ? time.day(at) : time.minute(at)));
    }
    return s("svg", { width, height: 26, viewBox: `0 0 ${width} 26` }, marks);
  }

  /** A row; the arrow keys walk through what is drawn in it. */
  function rowPicture(row, width, x, lines) {
    const middle = TALL / 2;
    const stops = [];
    const windows = [];
    const marks = [];
    for (const tick of row.ticks) {
      const place = x(tick.chosen || tick.nominal);
      if (tick.window) windows.push(s("rect", { class: `twindow mark-${tick.mark}`, x: x(tick.window[0]), y: middle - 6, width: Math.max(3, x(tick.window[1]) - x(tick.window[0])), height: 12, rx: 3 }));
      if (tick.count > 1 && tick.last) windows.push(s("rect", { class: `tmany mark-${tick.mark}`, x: place, y: middle - 4, width: Math.max(3, x(tick.last) - place), height: 8, rx: 4 }));
      const drawn = shape(tick.mark, place, middle);
      drawn.classList.add("stop");
      marks.push(drawn);
      stops.push({ drawn, place, key: tick.nominal, words: () => tickWords(row, tick) });
    }
    for (const cell of row.cells) {
      const all = Object.entries(cell.marks).sort((a, b) => b[1] - a[1]);
      const total = all.reduce((sum, [, count]) => sum + count, 0);
      const left = x(cell.from);
      const wide = Math.max(1, x(cell.to) - left - 0.5);
      let top = middle + 9;
      const parts = all.map(([mark, count]) => {
        const tall = (count / total) * 18;
        top -= tall;
        return s("rect", { class: `tcell bar-${mark}`, x: left, y: top, width: wide, height: tall });
      });
      const drawn = s("g", { class: "stop" }, parts);
      marks.push(drawn);
      stops.push({ drawn, place: left + wide / 2, key: cell.from, words: () => [h("strong", {}, row.name), h("p", {}, `${time.short(cell.from)} to ${time.short(cell.to)}`), all.map(([mark, count]) => h("p", {}, chip(mark), ` ${count.toLocaleString("en")}`))] });
    }
    const counts = {};
    for (const tick of row.ticks) counts[tick.mark] = (counts[tick.mark] || 0) + tick.count;
    for (const cell of row.cells) for (const [mark, count] of Object.entries(cell.marks)) counts[mark] = (counts[mark] || 0) + count;
    const summary = Object.entries(counts).map(([mark, count]) => `${count} ${(MARKS[mark] || [mark])[0].toLowerCase()}`).join(", ") || "nothing in this time";
    let at = -1;
    const picture = s("svg", { class: "tplot", width, height: TALL, viewBox: `0 0 ${width} ${TALL}`, tabindex: "0", role: "img", "data-key": `row-${row.id}`, "aria-label": `${row.name}: ${summary}${row.hasMore ? "; only those nearest to now are drawn" : ""}. Use the arrow keys to walk through them.` },
      lines, windows, marks);
    const point = (nth) => {
      for (const stop of stops) stop.drawn.classList.remove("at");
      at = nth;
      if (nth < 0 || !stops[nth]) return leave();
      pointed = { row: row.id, key: stops[nth].key };
      stops[nth].drawn.classList.add("at");
      put(tip, stops[nth].words());
      tip.hidden = false;
      const box = picture.getBoundingClientRect();
      const left = Math.min(Math.max(8, box.left + stops[nth].place - 130), innerWidth - 276);
      const under = box.bottom + 150 < innerHeight;
      tip.style.left = `${left}px`;
      tip.style.top = under ? `${box.bottom + 2}px` : `${Math.max(8, box.top - tip.offsetHeight - 2)}px`;
    };
    again.set(row.id, (key) => point(stops.findIndex((stop) => stop.key === key)));
    picture.addEventListener("pointermove", (event) => {
      const here = event.clientX - picture.getBoundingClientRect().left;
      let best = -1;
      stops.forEach((stop, nth) => { if (Math.abs(stop.place - here) < (best < 0 ? 12 : Math.abs(stops[best].place - here))) best = nth; });
      if (best !== at) point(best);
    });
    picture.addEventListener("pointerleave", () => point(-1));
    picture.addEventListener("blur", () => point(-1));
    picture.addEventListener("keydown", (event) => {
      const moves = { ArrowRight: at + 1, ArrowLeft: at < 0 ? stops.length - 1 : at - 1, Home: 0, End: stops.length - 1 };
      if (event.key === "Escape") return point(-1);
      if (!(event.key in moves) || !stops.length) return;
      event.preventDefault();
      point(Math.min(Math.max(0, moves[event.key]), stops.length - 1));
    });
    return picture;
  }

  function tickWords(row, tick) {
    const many = tick.count > 1 ? `${tick.count.toLocaleString("en")} periods from ${time.short(tick.nominal)} to ${time.short(tick.last || tick.nominal)}` : `Period of ${time.short(tick.nominal)}`;
    return [h("strong", {}, row.name), " ", chip(tick.mark), h("p", {}, many),
      tick.chosen && tick.chosen !== tick.nominal && h("p", {}, `Chosen: ${time.short(tick.chosen)}`),
      tick.window && h("p", {}, `Window: ${time.short(tick.window[0])} to ${time.short(tick.window[1])}`),
      h("p", { class: "hint" }, tick.why)];
  }

  const resized = new ResizeObserver(calm(80, () => { if (node.isConnected && !rows.contains(document.activeElement)) draw(); }));
  drawZooms();
  await refresh();
  // Its width is known only when it is shown.
  requestAnimationFrame(() => { draw(); resized.observe(rows); });
  return { title: "Timeline", node, refresh: () => (tip.hidden ? refresh() : undefined), close: () => resized.disconnect() };
}
