// Why: a job and a time, and the answer.

import { calm, h, put } from "./dom.js";
import { get } from "./net.js";
import { chip, empty, jobLink, section, show } from "./parts.js";
import * as time from "./time.js";

export async function why(context) {
  const answer = h("div", { "aria-live": "polite" });
  const names = h("datalist", { id: "names" });
  const job = h("input", { id: "job", list: "names", autocomplete: "off", required: true, value: context.params.get("job") || "", oninput: calm(200, suggest) });
  const given = context.params.get("at");
  const at = h("input", { id: "at", type: "datetime-local", step: "1", required: true, value: local(given ? Date.parse(given) : time.now()) });
  const node = h("div", {},
    h("div", { class: "head" }, h("div", {}, h("h1", {}, "Why"), h("p", { class: "lead" }, "Why did a job run at a time, or why did it not?"))),
    h("form", { class: "filter", onsubmit: (event) => { event.preventDefault(); look(); } },
      h("label", { for: "job" }, "Job"), job, names,
      h("label", { for: "at" }, `Time (${time.HERE})`), at,
      h("button", { type: "submit", class: "primary" }, "Ask")),
    answer);

  async function suggest() {
    const page = await get("jobs", { search: job.value.trim(), limit: 20 });
    put(names, page.rows.map((row) => h("option", { value: row.id }, row.name)));
  }

  async function look() {
    const instant = new Date(at.value).toISOString().replace(".000Z", "Z");
    context.go(`/why?${new URLSearchParams({ job: job.value.trim(), at: instant })}`, { quietly: true });
    try {
      draw(await get("why", { id: job.value.trim(), at: instant }));
    } catch (error) {
      show(answer, error);
    }
  }

  function draw(said) {
    const e = said.explained;
    const nearby = (words, it) => it && h("p", {}, `${words} `, h("a", { href: `#/why?job=${encodeURIComponent(said.job)}&at=${it.nominal}` }, time.full(it.nominal)), it.chosen && it.chosen !== it.nominal ? ` (runs at ${time.short(it.chosen)})` : "");
    put(answer,
      section("Answer", {}, h("p", { class: "answer" }, said.mark && [chip(said.mark), " "], said.mark ? said.answer.replace(`${said.mark}: `, "") : said.answer),
        h("p", { class: "hint" }, jobLink(said.job, said.name), ` · ${said.local} in ${said.zone} · ${said.at}`),
        nearby("The period before is", said.before), nearby("The period after is", said.after)),
      h("div", { class: "grid" },
        section("The schedule, field by field", { kind: "half" }, said.fields.length
          ? h("ul", { class: "checks" }, said.fields.map((field) => h("li", { class: field.matches ? "yes" : "no" },
              h("span", { class: "check", "aria-hidden": "true" }, field.matches ? "✓" : "✗"), " ", h("strong", {}, field.name), `: ${field.value} `,
              h("span", { class: "hint" }, field.matches ? `is among ${field.wanted}` : `is not among ${field.wanted}`))))
          : empty("It has no fields."), h("p", { class: "hint" }, said.verdict.split("\n")[0])),
        section("How the time was chosen", { kind: "half" }, e
          ? h("pre", { class: "quiet-text", tabindex: "0" }, e.text.trim())
          : empty("No period is about this time."))));
  }

  await suggest();
  if (job.value && given) await look();
  else put(answer, empty("Pick a job and a time.", "Every period that was due is recorded with its reason, and every one to come is computed as it will be."));
  return { title: "Why", node };
}

/** An instant as a field for local times has it. */
function local(milliseconds) {
  const date = new Date(milliseconds);
  const shifted = new Date(milliseconds - date.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 19);
}
