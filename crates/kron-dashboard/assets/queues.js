// Queues: what waits, what runs, what failed, and the dead letters.

import { h, put } from "./dom.js";
import { get } from "./net.js";
import { act, careful, chip, empty, files, jobLink, pager, section, show, table } from "./parts.js";
import * as time from "./time.js";

const STATES = ["available", "active", "scheduled", "retryable", "pending", "completed", "cancelled", "discarded"];
const MARK = { available: "waiting", active: "running", scheduled: "planned", retryable: "retrying", pending: "waiting", completed: "succeeded", cancelled: "cancelled", discarded: "failed" };

export async function queues(context) {
  const state = {
    state: context.params.get("state") || "", queue: context.params.get("queue") || "",
    dead: context.params.get("dead") === "true", offset: Number(context.params.get("offset")) || 0,
  };
  const overview = h("div");
  const list = h("div", { class: "rows" });
  const choice = (id, words, options, key) => [h("label", { for: id }, words), h("select", { id, onchange: (event) => { Object.assign(state, { [key]: event.target.value, offset: 0 }); look(); } }, options)];
  const queueChoice = h("select", { id: "queue", onchange: (event) => { Object.assign(state, { queue: event.target.value, offset: 0 }); look(); } });
  const dead = h("input", { id: "dead", type: "checkbox", onchange: () => { Object.assign(state, { dead: dead.checked, offset: 0 }); look(); } });
  dead.checked = state.dead;
  const node = h("div", {},
    h("div", { class: "head" }, h("h1", {}, "Queues")),
    section("Queues", { id: "overview", tools: files("queues", {}, "queues") }, overview),
    section("Jobs in queues", { id: "work", tools: files("work", () => params(), "work") },
      h("div", { class: "filter" },
        h("label", { for: "queue" }, "Queue"), queueChoice,
        choice("state", "State", [h("option", { value: "" }, "any"), STATES.map((word) => h("option", { value: word, selected: word === state.state }, word))], "state"),
        h("label", { class: "check-label" }, dead, " Dead letters only")),
      list));

  const params = () => ({ state: state.state, queue: state.queue, dead: state.dead || "", offset: state.offset });

  function look() {
    context.go(`/queues?${new URLSearchParams(Object.entries(params()).filter(([, value]) => value))}`, { quietly: true });
    return refresh().catch((error) => show(list, error, look));
  }

  async function refresh() {
    const [all, page] = await Promise.all([get("queues"), get("work", { ...params(), limit: 25 })]);
    drawQueues(all);
    drawWork(page);
  }

  function drawQueues(all) {
    const chosen = [h("option", { value: "" }, "all"), all.map((queue) => h("option", { value: queue.name, selected: queue.name === state.queue }, queue.name))];
    if (document.activeElement !== queueChoice) put(queueChoice, chosen);
    if (!all.length) return put(overview, empty("No queue has had a job yet."));
    const may = context.may.change ? {} : { disabled: true, title: "You may not change queues here." };
    put(overview, table("Queues", [
      ["Queue", (queue) => [h("span", { class: "job-name" }, queue.name), queue.paused && [" ", chip("paused")]]],
      ...STATES.map((word) => [word, (queue) => (queue.states.find(([name]) => name === word)?.[1] || 0).toLocaleString("en"), "number-cell"]),
      ["", (queue) => h("button", { type: "button", "data-key": `queue-${queue.name}`, ...may, onclick: () => act({ act: queue.paused ? "resume-queue" : "pause-queue", queue: queue.name }, refresh), "aria-label": `${queue.paused ? "Resume" : "Pause"} the queue ${queue.name}` }, queue.paused ? "Resume" : "Pause")],
    ], all, (queue) => queue.name));
  }

  function drawWork(page) {
    if (!page.total) return put(list, state.dead ? empty("No dead letters.", "Jobs that failed for good and asked to be kept would be here.") : empty("No job is like that."));
    const may = context.may.change ? {} : { disabled: true, title: "You may not change jobs here." };
    const actions = (job) => [
      job.dead && h("button", { type: "button", "data-key": `requeue-${job.id}`, ...may, onclick: () => act({ act: "requeue", work: job.id }, refresh), "aria-label": `Requeue ${job.id}` }, "Requeue"),
      job.dead && careful("Remove", "Really remove?", () => act({ act: "discard", work: job.id }, refresh), { class: "quiet", "data-key": `discard-${job.id}`, ...may }),
      ["available", "active", "scheduled", "retryable", "pending"].includes(job.state) && careful("Cancel", "Really cancel?", () => act({ act: "cancel", work: job.id }, refresh), { class: "quiet", "data-key": `cancel-${job.id}`, ...may }),
    ];
    put(list, table("Jobs in queues", [
      ["Job", (job) => [h("span", { class: "job-name" }, job.kind), h("p", { class: "hint" }, job.id), job.job && h("p", { class: "hint" }, "of ", jobLink(job.job))]],
      ["State", (job) => [chip(MARK[job.state] || job.state), h("p", { class: "hint" }, job.dead ? `${job.state}, dead letter` : job.state)]],
      ["Attempt", (job) => `${job.attempt} of ${job.attempts}`, "number-cell"],
      ["When", (job) => job.next ? ["again ", time.at(job.next)] : job.ended ? time.at(job.ended) : job.started ? time.at(job.started) : time.at(job.created)],
      ["Error or arguments", (job) => job.error ? h("span", { class: "bad-text clip" }, job.error) : h("code", { class: "clip" }, job.args)],
      ["", (job) => h("div", { class: "tools" }, actions(job))],
    ], page.rows, (job) => job.id), pager(page, (offset) => { state.offset = offset; look(); }));
  }

  await refresh();
  return { title: "Queues", node, refresh };
}
