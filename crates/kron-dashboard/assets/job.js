// A job: what it does in words, what comes, what became of it, and how its times are chosen.

import { h, put, s } from "./dom.js";
import { get } from "./net.js";
import { act, careful, chip, empty, files, harmless, section, show, table, MARKS } from "./parts.js";
import * as time from "./time.js";

export async function job(context) {
  const id = context.id;
  const head = h("div", { class: "head" });
  const effect = h("div", { "aria-live": "polite" });
  const facts = h("div");
  const next = h("div");
  const explained = h("div");
  const runs = h("div");
  const output = h("div", { "aria-live": "polite" });
  const record = h("div");
  const state = { before: [], asks: false };

  const node = h("div", {}, head, effect, facts,
    h("div", { class: "grid" },
      section("Next runs", { kind: "half", tools: files("next", { id }, "next") }, next),
      section("How the time is chosen", { kind: "half" }, explained)),
    section("Runs", { note: "the latest, by how long they took", tools: files("runs", { id }, "runs") }, runs, output),
    section("Record", { note: "every period with its outcome and reason", tools: files("record", { id, limit: 200 }, "record") }, record));

  async function refresh() {
    const said = await get("job", { id });
    time.set(said.now);
    draw(said);
    await readRecord();
  }

  function draw(said) {
    const it = said.job;
    const actions = [];
    const can = (words, may) => may ? {} : { disabled: true, title: `You may not ${words} here.` };
    actions.push(careful("Run now", "Really run it now?", () => act({ act: "run", job: id }, refresh), { class: "primary", ...can("run jobs", context.may.run) }));
    if (context.about.pauses) {
      const words = it.paused ? "Resume…" : "Pause…";
      actions.push(h("button", { type: "button", "data-key": "pause", "aria-expanded": String(state.asks), onclick: () => { state.asks = !state.asks; draw(said); effect.querySelector("button")?.focus(); }, ...can("pause jobs", context.may.pause) }, words));
    }
    if (context.about.edits) {
      actions.push(h("a", { class: "button", "data-key": "edit", href: `#/edit/${encodeURIComponent(id)}` }, "Edit"));
    }
    actions.push(h("a", { class: "button quiet", "data-key": "why", href: `#/why?job=${encodeURIComponent(id)}` }, "Why…"));
    put(head,
      h("div", {}, h("h1", {}, it.name, it.paused && [" ", chip("paused")]),
        h("p", { class: "lead" }, it.words, " ", h("span", { class: "hint" }, h("code", {}, it.schedule), ` ${it.zone}`)),
        it.description && h("p", {}, it.description)),
      h("div", { class: "tools" }, actions));
    put(facts,
      it.held && h("div", { class: "problem", role: "alert" }, h("p", { class: "problem-title" }, "This job cannot run"), h("p", {}, it.held)),
      h("dl", { class: "facts" }, it.facts.map(([word, value]) => h("div", {}, h("dt", {}, word), h("dd", {}, value)))));
    drawEffect(said, it);
    drawNext(said.next, it);
    drawExplained(said.explained);
    drawRuns(said.runs);
  }

  /** What pausing or resuming would change, before it is done. */
  function drawEffect(said, it) {
    if (!state.asks) return put(effect);
    const close = () => { state.asks = false; draw(said); head.querySelector("[data-key=pause]")?.focus(); };
    const verb = it.paused ? "resume" : "pause";
    const words = it.paused
      ? [it.onResume && h("p", {}, "The run of ", h("strong", {}, time.at(it.onResume, time.full)), " has come due, is within its deadline and starts at once."),
         h("p", {}, said.next.length ? "These runs come, and those after them:" : "No run is to come.")]
      : [it.active > 0 && h("p", {}, "What runs now goes on."),
         h("p", {}, said.next.length ? "These runs do not happen, nor those after them, until it is resumed:" : "No run is to come.")];
    put(effect, section(it.paused ? `Resume ${it.name}?` : `Pause ${it.name}?`, { id: "effect", kind: "effect" }, words,
      said.next.length > 0 && h("ul", { class: "dates" }, said.next.map((row) => h("li", {}, time.at(row.chosen)))),
      h("div", { class: "tools" },
        h("button", { type: "button", class: "primary", "data-key": "effect-do", onclick: () => { state.asks = false; act({ act: verb, job: id }, refresh); } }, it.paused ? "Resume it" : "Pause it"),
        h("button", { type: "button", class: "quiet", "data-key": "effect-no", onclick: close }, "Leave it"))));
  }

  function drawNext(rows, it) {
    if (!rows.length) return put(next, empty(it.paused ? "It is paused." : "No run is to come.", it.paused ? "Nothing runs until it is resumed." : "The schedule has ended, or no time satisfies its constraints."));
    const same = it.zone === time.HERE;
    put(next, table("Next runs", [
      [same ? `In ${time.HERE}` : "Yours", (row) => time.at(row.chosen)],
      ...(same ? [] : [[it.zone, (row) => row.local]]),
      ["", (row) => row.mark === "planned" ? time.until(row.chosen) : chip(row.mark)],
    ], rows));
  }

  function drawExplained(it) {
    if (!it) return put(explained, empty("There is no run to explain."));
    const hasWindow = it.windowStart !== it.windowEnd;
    const bar = hasWindow && s("svg", { class: "window-plot", viewBox: "0 0 400 44", preserveAspectRatio: "none", role: "img", "aria-label": `The chosen time lies ${Math.round((it.share || 0) * 100)} percent into the window` },
      s("rect", { class: "window-bar", x: 6, y: 14, width: 388, height: 14, rx: 7 }),
      it.share !== null && s("path", { class: "window-tick", d: `M${6 + it.share * 388} 8v26` }));
    const rows = [
      ["Nominal time", time.at(it.nominal, time.full)],
      hasWindow && ["Window", [time.at(it.windowStart), " to ", time.at(it.windowEnd), ` (${it.window})`]],
      ["Chosen time", it.chosen ? h("strong", {}, time.at(it.chosen, time.full)) : "none: no time tried satisfies the constraints"],
      hasWindow && ["Distribution", it.distribution],
      hasWindow && ["Drawn", [`u = ${it.unit === null ? "none" : it.unit.toFixed(6)}`, `, candidate ${it.attempts} of at most ${it.attemptsMax}`]],
      it.constraints !== "none" && ["Constraints", it.constraints],
      ["Seed", h("code", { class: "wrap" }, it.seedMaterial)],
      ["Seed hash", h("code", { class: "wrap" }, it.seedHash)],
    ].filter(Boolean);
    put(explained, bar, h("dl", { class: "pairs" }, rows.map(([word, value]) => h("div", {}, h("dt", {}, word), h("dd", {}, value)))),
      h("p", { class: "hint" }, hasWindow ? "The same on every machine, every time it is computed: the seed decides." : "There is no window, so it runs at its nominal time."));
  }

  function drawRuns(rows) {
    if (!rows.length) return put(runs, empty("It has not run yet."));
    put(runs, plot(rows), table("Latest runs", [
      ["Run", (run) => run.nominal ? time.at(run.nominal) : h("span", {}, "by hand")],
      ["Outcome", (run) => chip(run.mark)],
      ["Started", (run) => run.started ? time.at(run.started) : "—"],
      ["Took", (run) => run.started && run.ended ? time.length(Date.parse(run.ended) - Date.parse(run.started)) : run.started ? time.since(run.started) : "—", "number-cell"],
      ["Detail", (run) => run.detail],
      ["Output", (run) => run.hasOutput ? h("button", { type: "button", class: "quiet", "data-key": `out-${run.id}`, "aria-label": `Show the output of the run ${run.id}`, onclick: () => showOutput(run) }, "Show") : "—"],
    ], rows.slice(0, 12), (run) => run.id));
  }

  async function showOutput(run) {
    try {
      const said = await get("output", { id, run: run.id });
      put(output, h("div", { class: "output" }, h("div", { class: "section-head" }, h("h3", {}, "Output"), h("p", { class: "hint" }, said.note),
        h("button", { type: "button", class: "quiet", onclick: () => put(output) }, "Close")),
        h("pre", { tabindex: "0", class: "terminal" }, harmless(said.text))));
    } catch (error) {
      show(output, error);
    }
  }

  async function readRecord() {
    const before = state.before.at(-1);
    const said = await get("record", { id, before });
    if (!said.rows.length) return put(record, empty("Nothing is recorded yet.", "Each period is written down here with its outcome, as soon as it has one."));
    put(record, table("Record of periods", [
      ["Period", (row) => row.count > 1 ? [time.at(row.nominal), " … ", row.last && time.at(row.last)] : time.at(row.nominal)],
      ["Outcome", (row) => [chip(row.mark), row.count > 1 && h("span", { class: "hint" }, ` ${row.atLeast ? "at least " : ""}${row.count} periods`)]],
      ["Why", (row) => row.why],
      ["Chosen", (row) => row.chosen ? time.at(row.chosen) : "—"],
      ["", (row) => h("a", { href: `#/why?job=${encodeURIComponent(id)}&at=${row.nominal}`, "data-key": `why-${row.nominal}`, "aria-label": `Why, for the period of ${time.full(row.nominal)}` }, "Why")],
    ], said.rows, (row) => row.nominal),
    h("div", { class: "pager" },
      h("button", { type: "button", "data-key": "newer", disabled: !state.before.length, onclick: () => { state.before.pop(); readRecord(); } }, "Newer"),
      h("button", { type: "button", "data-key": "older", disabled: !said.hasMore, onclick: () => { state.before.push(earlier(said.rows.at(-1).nominal)); readRecord(); } }, "Older")));
  }

  await refresh();
  return { title: id, node, refresh };
}

function earlier(at) {
  return new Date(Date.parse(at) - 1000).toISOString();
}

/** How long runs took, the latest on the right. */
function plot(rows) {
  const timed = rows.filter((run) => run.started && run.ended).slice(0, 60).reverse();
  if (timed.length < 2) return null;
  const took = timed.map((run) => Date.parse(run.ended) - Date.parse(run.started));
  const most = Math.max(...took, 1);
  const [width, height, step] = [720, 110, 720 / Math.max(timed.length, 20)];
  const bars = timed.map((run, nth) => {
    const tall = Math.max(2, (took[nth] / most) * (height - 16));
    return s("rect", { class: `bar-${run.mark}`, x: nth * step + 1, y: height - tall, width: Math.max(1, step - 2), height: tall, rx: 2 },
      s("title", {}, `${time.full(run.started)}: ${(MARKS[run.mark] || [run.mark])[0]}, ${time.length(took[nth])}`));
  });
  const sorted = [...took].sort((a, b) => a - b);
  const middle = sorted[Math.floor(sorted.length / 2)];
  const words = `${timed.length} runs; the median took ${time.length(middle)}, the longest ${time.length(most)}`;
  return h("figure", { class: "plot" },
    s("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": `Durations of the latest runs: ${words}` }, bars),
    h("figcaption", { class: "hint" }, words));
}
