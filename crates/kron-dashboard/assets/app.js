// The frame of the page: which view is shown, and when it looks again.

import { h, put } from "./dom.js";
import { follow, get, token } from "./net.js";
import { problem, toast } from "./parts.js";
import * as time from "./time.js";
import { now } from "./now.js";
import { timeline } from "./timeline.js";
import { load } from "./load.js";
import { jobs } from "./jobs.js";
import { job } from "./job.js";
import { form } from "./form.js";
import { why } from "./why.js";
import { queues } from "./queues.js";

const main = document.getElementById("main");
const VIEWS = { now, timeline, load, jobs, job, edit: form, new: form, why, queues };
const NAV = [["now", "Now"], ["timeline", "Timeline"], ["load", "Load"], ["jobs", "Jobs"], ["why", "Why"], ["queues", "Queues"]];
const OF = { job: "jobs", edit: "jobs", new: "jobs" };

/** What a view is given: who serves, what the address says, and how to go elsewhere. */
const context = { about: null, may: { run: false, change: false }, params: new URLSearchParams(), id: null, go };
let view = null;
let shown = 0;

function place() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name = "now", id] = path.split("/");
  return { name: name || "now", id: id ? decodeURIComponent(id) : null, params: new URLSearchParams(query) };
}

/** Changes the address without another look at everything. */
function go(hash, { quietly = false } = {}) {
  if (!quietly) { location.hash = hash; return; }
  history.replaceState(null, "", `#${hash}`);
}

async function route() {
  const number = ++shown;
  const { name, id, params } = place();
  view?.close?.();
  view = null;
  Object.assign(context, { name, id, params });
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.dataset.view === (OF[name] || name)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const make = VIEWS[name];
  if (!make) {
    document.title = "Not found · Kron";
    return put(main, h("h1", {}, "Not found"), problem({ message: "There is no such page.", hint: "The views are named above." }));
  }
  main.setAttribute("aria-busy", "true");
  try {
    const made = await make(context);
    if (number !== shown) return made.close?.();
    view = made;
    put(main, made.node);
    document.title = `${made.title} · Kron`;
  } catch (error) {
    if (number === shown) put(main, problem(error, route));
  } finally {
    if (number === shown) main.removeAttribute("aria-busy");
  }
}

// While one look is under way, the next waits for it: a slow network is not asked twice at once.
let looking = false;
let again = false;
async function refresh() {
  if (looking) { again = true; return; }
  if (!view?.refresh || document.hidden) return;
  looking = true;
  const current = view;
  try {
    await current.refresh();
  } catch (error) {
    if (error.status === 0) lost();
  }
  looking = false;
  if (again) { again = false; refresh(); }
}

const live = document.getElementById("live");
function heard(isHeard) {
  if (isHeard) {
    const wasLost = live.dataset.state === "lost";
    live.dataset.state = "live";
    live.textContent = "live";
    if (!context.about) start();
    else if (wasLost) { toast("The connection is back."); begin().then(refresh, () => {}); }
  } else lost();
}
function lost() {
  live.dataset.state = "lost";
  live.textContent = "connection lost";
}

async function begin() {
  const said = await get("about");
  context.about = said.about;
  context.may = said.may;
  time.set(said.now);
}

function navigation() {
  const links = NAV.filter(([name]) => name !== "queues" || context.about.queues);
  put(document.getElementById("nav"), links.map(([name, words]) => h("a", { href: `#/${name}`, "data-view": name }, words)));
  document.getElementById("place").textContent = `${context.about.product} ${context.about.version} on ${context.about.place}`;
}

function signIn(said) {
  if (document.getElementById("sign-in")) return;
  const field = h("input", { id: "token", type: "password", autocomplete: "off", required: true });
  const box = h("form", { id: "sign-in", class: "card sign-in", onsubmit: (event) => {
    event.preventDefault();
    token.set(field.value.trim());
    box.remove();
    start();
  } },
    h("h1", {}, "Sign in"),
    h("p", { class: "hint" }, said?.message || "This server asks for a token."),
    h("label", { for: "token" }, "Token"), field,
    h("p", { class: "hint" }, "It is kept in this tab alone, and forgotten with it."),
    h("button", { type: "submit", class: "primary" }, "Sign in"));
  put(main, box);
  field.focus();
}
addEventListener("kron:sign-in", (event) => { token.set(null); queueMicrotask(() => signIn(event.detail)); });

async function start() {
  try {
    await begin();
    navigation();
    await route();
  } catch (error) {
    if (error.status !== 401) put(main, problem(error, start));
  }
}

document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
addEventListener("hashchange", () => { route().then(() => main.focus({ preventScroll: true })); });
document.addEventListener("visibilitychange", refresh);
// What changes by the clock alone is looked at again too.
setInterval(refresh, 30_000);
await start();
follow(refresh, heard);
