// Now: what runs, what is next, what went wrong lately, and who is there.

import { h, put } from "./dom.js";
import { get } from "./net.js";
import { chip, empty, jobLink, section } from "./parts.js";
import * as time from "./time.js";

export async function now(context) {
  const numbers = h("dl", { class: "numbers" });
  const running = h("div", { class: "list" });
  const next = h("div", { class: "list" });
  const wrong = h("div", { class: "list" });
  const nodes = h("div", { class: "list" });
  const node = h("div", {},
    h("h1", { class: "away" }, "Now"),
    numbers,
    h("div", { class: "grid" },
      h("div", {}, section("Running", {}, running), section("Lately wrong", {}, wrong)),
      h("div", {}, section("Next", {}, next), section(context.about.queues ? "Nodes and workers" : "The daemon", {}, nodes))));

  async function refresh() {
    const said = await get("now");
    time.set(said.now);
    draw(said.pulse);
  }

  function draw(pulse) {
    const counts = pulse.counts;
    const number = (words, value, href, kind) => value === null || value === undefined ? null
      : h("div", { class: value && kind ? `number ${kind}` : "number" }, h("dt", {}, words), h("dd", {}, href ? h("a", { href, "data-key": words }, value.toLocaleString("en")) : value.toLocaleString("en")));
    put(numbers,
      number("Jobs", counts.jobs, "#/jobs"),
      number("Paused", counts.paused),
      number("Running", counts.running),
      number("Waiting", counts.waiting, "#/queues?state=available"),
      number("To be tried again", counts.retrying, "#/queues?state=retryable", "warn"),
      number("Dead letters", counts.dead, "#/queues?dead=true", "bad"));
    const name = (row) => row.job ? jobLink(row.job, row.name) : h("span", { class: "job-name" }, row.name);
    const line = (first, second, third, key) => h("div", { class: "line", "data-row": key }, h("div", { class: "line-main" }, first, third), h("div", { class: "line-side" }, second));
    put(running, pulse.running.length
      ? pulse.running.map((row) => line(name(row), time.since(row.since), h("p", { class: "hint" }, row.detail)))
      : empty("Nothing runs just now.", "What runs appears here by itself."));
    put(next, pulse.next.length
      ? pulse.next.map((row) => line(name(row), time.until(row.at), h("p", { class: "hint" }, time.at(row.at)), row.job))
      : empty("Nothing is planned.", counts.jobs ? "All jobs are paused, or their schedules have ended." : context.about.edits ? h("a", { href: "#/new" }, "Make the first job") : "There are no jobs yet."));
    put(wrong, pulse.wrong.length
      ? pulse.wrong.map((row) => line([name(row), " ", chip(row.mark)], h("span", { class: "count" }, time.at(row.at)), h("p", { class: "hint" }, row.why)))
      : empty("Nothing went wrong lately.", "Failures, missed and skipped runs would be listed here with their reasons."));
    put(nodes, pulse.nodes.map((row) => line(
      [h("span", { class: "job-name" }, row.name), " ", h("span", { class: `tag ${row.well ? "" : "bad"}` }, row.well ? row.role : `${row.role}, not well`)],
      row.seen ? h("span", { class: "count" }, time.since(row.seen)) : null,
      h("p", { class: "hint" }, row.detail))));
  }

  await refresh();
  return { title: "Now", node, refresh };
}
