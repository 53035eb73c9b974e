// What several views are made of.

import { h, put, s } from "./dom.js";
import { post, save } from "./net.js";

/** How outcomes look: a shape each, so that colour is never all there is. */
export const MARKS = {
  planned: ["Planned", "ring"],
  paused: ["Paused", "bars"],
  waiting: ["Waiting", "ring"],
  running: ["Running", "play"],
  executed: ["Started", "dot"],
  succeeded: ["Succeeded", "dot"],
  retrying: ["Failed, tried again", "turn"],
  failed: ["Failed", "cross"],
  cancelled: ["Cancelled", "slash"],
  skipped: ["Skipped", "dash"],
  missed: ["Missed", "triangle"],
  unschedulable: ["Unschedulable", "diamond"],
};

/** The shape of an outcome, around a point. */
export function shape(mark, x, y, r = 5) {
  const kind = (MARKS[mark] || ["", "dot"])[1];
  const place = { class: `shape mark-${mark}` };
  switch (kind) {
    case "ring": return s("circle", { ...place, class: `shape hollow mark-${mark}`, cx: x, cy: y, r: r - 1 });
    case "bars": return s("path", { ...place, class: `shape line mark-${mark}`, d: `M${x - r / 2} ${y - r}v${2 * r}M${x + r / 2} ${y - r}v${2 * r}` });
    case "play": return s("path", { ...place, d: `M${x - r + 1} ${y - r}L${x + r} ${y}L${x - r + 1} ${y + r}z` });
    case "turn": return s("path", { ...place, class: `shape line mark-${mark}`, d: `M${x + r} ${y}a${r} ${r} 0 1 1 -${r} -${r}m0 0l-${r / 2} -${r / 2}m${r / 2} ${r / 2}l-${r / 2} ${r / 2}` });
    case "cross": return s("path", { ...place, class: `shape line mark-${mark}`, d: `M${x - r} ${y - r}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}` });
    case "slash": return s("path", { ...place, class: `shape line mark-${mark}`, d: `M${x - r} ${y + r}l${2 * r} ${-2 * r}` });
    case "dash": return s("path", { ...place, class: `shape line mark-${mark}`, d: `M${x - r} ${y}h${2 * r}` });
    case "triangle": return s("path", { ...place, d: `M${x} ${y - r}l${r} ${2 * r}h${-2 * r}z` });
    case "diamond": return s("path", { ...place, d: `M${x} ${y - r}l${r} ${r}l${-r} ${r}l${-r} ${-r}z` });
    default: return s("circle", { ...place, cx: x, cy: y, r });
  }
}

/** An outcome as a shape and a word. */
export function chip(mark) {
  const icon = s("svg", { class: "icon", viewBox: "0 0 14 14", width: 14, height: 14, "aria-hidden": "true" }, shape(mark, 7, 7));
  return h("span", { class: `chip chip-${mark}` }, icon, (MARKS[mark] || [mark])[0]);
}

export function jobLink(id, name = id) {
  return h("a", { href: `#/job/${encodeURIComponent(id)}`, class: "job-name" }, name);
}

/** A part of a page under a heading. */
export function section(title, { id, note, tools, kind = "" } = {}, ...children) {
  const name = id || title.toLowerCase().replace(/\W+/g, "-");
  const head = h("div", { class: "section-head" }, h("h2", { id: `h-${name}` }, title), note && h("p", { class: "hint" }, note), tools && h("div", { class: "tools" }, tools));
  return h("section", { class: `card ${kind}`, "aria-labelledby": `h-${name}` }, head, ...children);
}

/** That there is nothing, and why that may be. */
export function empty(title, ...more) {
  return h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), more.length ? h("p", { class: "hint" }, ...more) : null);
}

/** What went wrong, and what to do about it. */
export function problem(error, again) {
  return h("div", { class: "problem", role: "alert" },
    h("p", { class: "problem-title" }, error.message),
    error.excerpt && h("pre", {}, error.excerpt),
    error.hint && h("p", {}, error.hint),
    again && h("button", { type: "button", onclick: again }, "Try again"));
}

/** A table. Columns are pairs of a heading and what is shown of a row. */
export function table(label, columns, rows, key) {
  const head = h("tr", {}, columns.map(([title, , kind]) => h("th", { scope: "col", class: kind }, title)));
  const body = rows.map((row) => h("tr", { "data-row": key ? key(row) : null }, columns.map(([title, cell, kind], nth) =>
    nth === 0 ? h("th", { scope: "row", class: kind, "data-label": title }, cell(row)) : h("td", { class: kind, "data-label": title }, cell(row)))));
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": label }, h("table", {}, h("thead", {}, head), h("tbody", {}, body)));
}

/** The way to other pages of a list. */
export function pager(page, go) {
  const first = page.total ? page.offset + 1 : 0;
  const last = Math.min(page.offset + page.limit, page.total);
  const button = (words, offset, off) => h("button", { type: "button", "data-key": words, disabled: off, onclick: () => go(offset) }, words);
  return h("div", { class: "pager" },
    button("Previous", Math.max(0, page.offset - page.limit), page.offset === 0),
    h("span", {}, `${first.toLocaleString("en")}–${last.toLocaleString("en")} of ${page.total.toLocaleString("en")}`),
    button("Next", page.offset + page.limit, last >= page.total));
}

/** Buttons that save a table. */
export function files(path, params, name) {
  const button = (words, from, file) => h("button", {
    type: "button", class: "quiet", "data-key": `${name}-${words}`, "aria-label": `Save ${name} as ${words}`,
    onclick: () => save(from, typeof params === "function" ? params() : params, file).catch((error) => toast(error.message, true)),
  }, words);
  return [button("CSV", `${path}.csv`, `kron-${name}.csv`), button("JSON", path, `kron-${name}.json`)];
}

/** Says something in passing. */
export function toast(words, isBad = false) {
  const note = h("div", { class: isBad ? "toast bad" : "toast" }, words);
  document.getElementById("toasts").append(note);
  setTimeout(() => note.remove(), isBad ? 9000 : 5000);
}

/** Does something and says so. */
export async function act(what, done) {
  try {
    const answer = await post("act", what);
    toast(answer.done);
    await done?.();
  } catch (error) {
    toast(error.hint ? `${error.message}. ${error.hint}` : error.message, true);
  }
}

/** What was asked once and waits to be confirmed, until when. A list that is drawn anew in between changes nothing about it. */
const asked = new Map();
const CONFIRM_WITHIN = 4000;

/** A button that asks once more before it acts. */
export function careful(words, sure, action, attributes = {}) {
  const key = `${location.hash} ${attributes["data-key"] || words}`;
  const isAsked = () => (asked.get(key) || 0) > Date.now();
  const button = h("button", { type: "button", "data-key": words, ...attributes, onclick: () => {
    const confirmed = isAsked();
    if (confirmed) asked.delete(key);
    else asked.set(key, Date.now() + CONFIRM_WITHIN);
    draw();
    if (confirmed) action();
  } });
  function draw() {
    button.textContent = isAsked() ? sure : words;
    button.toggleAttribute("data-sure", isAsked());
    if (isAsked()) setTimeout(draw, asked.get(key) - Date.now() + 50);
  }
  draw();
  return button;
}

/** Output is anybody's text: escapes for terminals are left out, other controls made visible. */
export function harmless(text) {
  return text
    .replace(/\u001b\[[0-?]*[ -/]*[@-~]/g, "")
    .replace(/\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)/g, "")
    .replace(/\r\n/g, "\n")
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

/** A message in the place of what it is about. */
export function show(place, error, again) {
  put(place, problem(error, again));
}
