// Jobs: all of them, page by page.

import { calm, h, put } from "./dom.js";
import { get } from "./net.js";
import { chip, empty, files, jobLink, pager, show, table } from "./parts.js";
import * as time from "./time.js";

const LIMIT = 25;

export async function jobs(context) {
  const state = { search: context.params.get("search") || "", offset: Number(context.params.get("offset")) || 0 };
  const list = h("div", { class: "rows" });
  const search = h("input", { type: "search", id: "search", value: state.search, placeholder: "backup", autocomplete: "off", oninput: calm(200, () => {
    Object.assign(state, { search: search.value.trim(), offset: 0 });
    look();
  }) });
  const node = h("div", {},
    h("div", { class: "head" }, h("h1", {}, "Jobs"),
      h("div", { class: "tools" }, files("jobs", () => ({ search: state.search, limit: 200 }), "jobs"),
        h("a", { class: "button", href: "#/new" }, context.about.edits ? "New job" : "Try a schedule"))),
    h("div", { class: "filter" }, h("label", { for: "search" }, "Name has"), search),
    list);

  function look() {
    context.go(`/jobs?${new URLSearchParams({ search: state.search, offset: state.offset })}`, { quietly: true });
    return refresh().catch((error) => show(list, error, look));
  }

  async function refresh() {
    const page = await get("jobs", { ...state, limit: LIMIT });
    if (!page.total) {
      const none = state.search
        ? empty(`No job has “${state.search}” in its name.`)
        : empty("There are no jobs yet.", context.about.edits ? h("a", { href: "#/new" }, "Make the first one") : context.about.editsNot);
      return put(list, none);
    }
    put(list, table("Jobs", [
      ["Job", (job) => [jobLink(job.id, job.name), job.description && h("p", { class: "hint" }, job.description)]],
      ["Schedule", (job) => [h("span", {}, job.words || "—"), h("p", { class: "hint" }, h("code", {}, job.schedule), ` ${job.zone}`)]],
      ["Next", (job) => job.held ? chip("unschedulable") : job.paused ? chip("paused") : job.next ? [time.at(job.next), h("p", { class: "hint" }, time.until(job.next))] : "—"],
      ["Last", (job) => job.last ? [time.at(job.last), job.lastMark && h("p", { class: "hint" }, chip(job.lastMark))] : "—"],
    ], page.rows, (job) => job.id), pager(page, (offset) => { state.offset = offset; look(); }));
  }

  await refresh();
  return { title: "Jobs", node, refresh };
}
