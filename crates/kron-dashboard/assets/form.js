// The form that teaches: at every key it tells what would happen.

import { calm, h, put } from "./dom.js";
import { get, post } from "./net.js";
import { problem, section, toast } from "./parts.js";
import * as time from "./time.js";

const EXAMPLES = {
  ojs: [["30 9 * * MON-FRI", "weekdays at half past nine"], ["0 0 L * *", "the last day of each month"], ["@every 15m", "every quarter of an hour"], ["daily around 14:00", "a phrase, scattered by name"]],
  krontab: [["30 2 * * *", "every night"], ["@every 15m", "every quarter of an hour"], ["\"daily around 14:00\"", "a phrase, scattered by name"], ["0 6 1 * *", "the first of each month"]],
};

export async function form(context) {
  const id = context.name === "edit" ? context.id : null;
  const language = context.about.language;
  const isServer = language === "ojs";
  const mayChange = context.may.change;
  let before = {};
  if (id) before = (await get("job", { id })).job.definition || {};
  const fields = {};
  const said = h("div", { class: "said", "aria-live": "polite" });
  const errors = {};

  function field(name, words, attributes = {}, more = {}) {
    const tag = more.tag || "input";
    const input = h(tag, { id: `f-${name}`, autocomplete: "off", spellcheck: "false", value: before[name] ?? more.value ?? "", "aria-describedby": `e-${name}`, oninput: look, ...attributes }, more.options);
    if (tag === "select") input.value = before[name] ?? more.value ?? "";
    fields[name] = input;
    errors[name] = h("p", { class: "field-error", id: `e-${name}` });
    return h("div", { class: `field ${more.kind || ""}` }, h("label", { for: `f-${name}` }, words), input, more.list, more.hint && h("p", { class: "hint" }, more.hint), errors[name]);
  }
  const option = (value, words = value) => h("option", { value }, words);
  const zones = h("datalist", { id: "zones" }, ["UTC", ...(Intl.supportedValuesOf ? Intl.supportedValuesOf("timeZone") : [])].map((zone) => h("option", { value: zone })));
  const examples = h("p", { class: "hint examples" }, "Try ", EXAMPLES[language].map(([text, words]) => h("button", { type: "button", class: "example", title: words, onclick: () => { fields.cron.value = text; look(); fields.cron.focus(); } }, text)));

  const submit = h("button", { type: "submit", class: "primary", disabled: true }, id ? "Save" : "Register");
  const body = h("form", { class: "form", novalidate: true, onsubmit: (event) => { event.preventDefault(); saveIt(); } },
    field("cron", "Schedule", { required: true, class: "big mono" }, { kind: "wide" }), examples,
    field("timezone", "Time zone", { list: "zones", placeholder: isServer ? "UTC" : time.HERE }, { list: zones, value: id ? undefined : time.HERE }),
    isServer && !id && field("name", "Name", { required: true, placeholder: "daily-report" }, { hint: "small letters, digits, - and ." }),
    !isServer && field("name", "Name", { placeholder: "backup" }),
    isServer && field("type", "Type of its jobs", { required: true, placeholder: "report.daily" }),
    field("window", "Window", { placeholder: "none" }, { hint: "such as 30m or 2h: it runs at one moment in it" }),
    field("windowMode", "The window lies", {}, { tag: "select", value: "after", options: [option("after", "after the nominal time"), option("around", "around it")] }),
    field("distribution", "Distribution", {}, { tag: "select", options: [option("", "uniform"), option("normal"), option("skewEarly", "mostly early"), option("skewLate", "mostly late"), option("exponential")] }),
    field("deadline", "Deadline", { placeholder: isServer ? "none" : "0s" }, { hint: "how late it may start" }),
    isServer && field("overlap_policy", "When the one before is still active", {}, { tag: "select", value: "skip", options: [option("skip", "leave this one out"), option("allow", "run both"), option("cancel_previous", "cancel the one before"), option("enqueue", "wait for it")] }),
    isServer && field("queue", "Queue", { placeholder: "default" }),
    isServer && field("args", "Arguments", { rows: 2, class: "mono", placeholder: "[]" }, { tag: "textarea", kind: "wide", hint: "a JSON list" }),
    isServer && field("description", "Description", {}, { kind: "wide" }),
    isServer && h("div", { class: "tools wide" }, submit, h("a", { class: "button quiet", href: id ? `#/job/${encodeURIComponent(id)}` : "#/jobs" }, "Leave it"),
      !mayChange && h("p", { class: "hint" }, "You may look and try, but not save here.")));
  const node = h("div", {},
    h("div", { class: "head" }, h("div", {}, h("h1", {}, id ? `Edit ${id}` : isServer ? "New job" : "Try a schedule"),
      h("p", { class: "lead" }, isServer ? "Type, and see what it means before it counts." : context.about.editsNot))),
    h("div", { class: "form-grid" }, h("div", { class: "card" }, body), section("What it means", { id: "meaning" }, said)));

  const draft = () => ({ ...(id ? { id } : {}), fields: Object.fromEntries(Object.entries(fields).map(([name, input]) => [name, input.value])) });
  const clear = () => { for (const [name, place] of Object.entries(errors)) { put(place); fields[name].removeAttribute("aria-invalid"); } };

  function wrong(error) {
    const place = errors[error.field];
    if (place) {
      put(place, error.message);
      fields[error.field].setAttribute("aria-invalid", "true");
    }
    put(said, problem(error));
  }

  let asking = null;
  const ask = calm(120, async () => {
    asking?.abort();
    asking = new AbortController();
    try {
      const preview = await post("preview", draft(), asking.signal);
      clear();
      draw(preview);
      submit.disabled = !mayChange;
    } catch (error) {
      if (error.name === "AbortError") return;
      clear();
      submit.disabled = true;
      wrong(error);
    }
  });
  function look() {
    if (!fields.cron.value.trim()) {
      clear();
      submit.disabled = true;
      return put(said, h("p", { class: "hint" }, "Write a schedule, and its meaning appears here: in words, with its next runs."));
    }
    ask();
  }

  function draw(preview) {
    const change = preview.change;
    const dates = (list) => h("ul", { class: "dates" }, list.slice(0, 6).map((at) => h("li", {}, time.at(at, time.full))), list.length > 6 && h("li", { class: "hint" }, `and ${list.length - 6} more`));
    put(said,
      h("p", { class: "lead" }, preview.words),
      preview.written && h("p", {}, "Written as ", h("code", { class: "wrap" }, preview.written)),
      preview.note && h("p", { class: "hint" }, preview.note),
      preview.warnings.map((warning) => h("div", { class: "warning" }, h("p", {}, warning.message), warning.excerpt && h("pre", {}, warning.excerpt), warning.help && h("p", { class: "hint" }, warning.help))),
      change && (change.added.length || change.removed.length
        ? h("div", { class: "change" }, h("h3", {}, "These dates change"),
            change.removed.length > 0 && [h("p", { class: "removed" }, "No longer"), dates(change.removed)],
            change.added.length > 0 && [h("p", { class: "added" }, "New"), dates(change.added)],
            h("p", { class: "hint" }, `${change.kept} of the next ${preview.next.length} stay.`))
        : h("p", { class: "hint" }, "No date changes.")),
      h("h3", {}, "Next runs"),
      preview.next.length
        ? h("table", { class: "plain" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Yours"), h("th", { scope: "col" }, preview.zone))),
            h("tbody", {}, preview.next.map((at, nth) => h("tr", {}, h("td", {}, time.at(at)), h("td", {}, preview.local[nth])))))
        : h("p", { class: "hint" }, "None is to come."));
  }

  async function saveIt() {
    submit.disabled = true;
    try {
      const done = await post("save", draft());
      toast(`${done.id} is saved.`);
      location.hash = `#/job/${encodeURIComponent(done.id)}`;
    } catch (error) {
      submit.disabled = !mayChange;
      clear();
      wrong(error);
      fields[error.field]?.focus();
    }
  }

  look();
  return { title: id ? `Edit ${id}` : "Schedule", node };
}
