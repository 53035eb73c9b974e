// Times as people read them, by the server's clock.

import { h } from "./dom.js";

/** The zone of whoever looks. */
export const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

let ahead = 0;

/** Hears what time it is at the server. */
export function set(now) {
  ahead = Date.parse(now) - Date.now();
}

/** The server's time, in milliseconds. */
export function now() {
  return Date.now() + ahead;
}

const FULL = { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false };
const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false };
const DAY = { weekday: "short", month: "short", day: "numeric" };

function format(at, options) {
  return new Intl.DateTimeFormat("en-GB", options).format(new Date(at));
}

export const full = (at) => format(at, FULL);
export const day = (at) => format(at, DAY);
export const minute = (at) => format(at, { hour: "2-digit", minute: "2-digit", hour12: false });

/** Short: the time of day, and the day unless it is today's. */
export function short(at) {
  const clock = format(at, CLOCK);
  return day(at) === day(now()) ? clock : `${day(at)}, ${clock}`;
}

/** An instant with its machine-readable form, and the whole of it for whoever points at it. */
export function at(instant, how = short) {
  return h("time", { datetime: instant, title: `${full(instant)} (${HERE})\n${instant}` }, how(instant));
}

/** A length of time in two units. */
export function length(milliseconds) {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 1) return `${Math.round(milliseconds)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

function whole(milliseconds) {
  return length(Math.round(milliseconds / 1000) * 1000).replace("0 ms", "now").replace(/\.0 s/, " s");
}

/** How long until an instant; counts by itself. */
export function until(instant) {
  return h("span", { class: "count", "data-until": instant }, countdown(instant));
}

/** How long since an instant; counts by itself. */
export function since(instant) {
  return h("span", { class: "count", "data-since": instant }, whole(now() - Date.parse(instant)));
}

function countdown(instant) {
  const left = Date.parse(instant) - now();
  return left <= 0 ? "now" : `in ${whole(left)}`;
}

setInterval(() => {
  for (const node of document.querySelectorAll("[data-until]")) node.textContent = countdown(node.dataset.until);
  for (const node of document.querySelectorAll("[data-since]")) node.textContent = whole(now() - Date.parse(node.dataset.since));
}, 1000);
