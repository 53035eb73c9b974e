// Load: how many jobs start when, before and after spreading.

import { h, put, s } from "./dom.js";
import { get } from "./net.js";
import { empty, files, section, show } from "./parts.js";
import * as time from "./time.js";

export async function load(context) {
  const state = { day: context.params.get("day") || "" };
  const day = h("input", { id: "day", type: "date", onchange: () => { state.day = day.value; look(); } });
  const chart = h("div", { class: "rows" });
  const week = h("div");
  const numbers = h("dl", { class: "numbers" });
  const counting = h("div");
  const params = () => ({ zone: time.HERE, day: state.day });
  const node = h("div", {},
    h("div", { class: "head" }, h("div", {}, h("h1", {}, "Load"), h("p", { class: "lead" }, "How many jobs start in each minute, if all began at their nominal times, and as they will be.")),
      h("div", { class: "tools" }, h("label", { for: "day" }, "Day"), day)),
    numbers,
    counting,
    section("Starts a minute", { note: `a day in ${time.HERE}`, tools: files("load", params, "load") }, chart),
    section("The week", { note: "starts an hour, from that day on" }, week));

  function look() {
    context.go(`/load?${new URLSearchParams({ day: state.day })}`, { quietly: true });
    return refresh().catch((error) => show(chart, error, look));
  }

  async function refresh() {
    const said = await get("load", params());
    // Very many jobs are counted in steps, one for each question.
    clearTimeout(state.again);
    if (said.counting) state.again = setTimeout(() => node.isConnected && refresh().catch((error) => show(chart, error, look)), 200);
    put(counting, said.counting && bar(said.counting));
    if (!said.day) return;
    day.value = said.day;
    const number = (words, peak) => h("div", { class: "number" }, h("dt", {}, words), h("dd", {}, peak ? peak.starts.toLocaleString("en") : "0"), peak && h("dd", { class: "hint" }, `at ${peak.local}`));
    const factor = said.peakBefore && said.peakAfter ? said.peakBefore.starts / said.peakAfter.starts : null;
    put(numbers, number("Peak before spreading", said.peakBefore), number("Peak as it will be", said.peakAfter),
      factor && h("div", { class: "number" }, h("dt", {}, "The peak is lower by"), h("dd", {}, `${factor.toFixed(factor < 10 ? 1 : 0)}×`)),
      h("div", { class: "number" }, h("dt", {}, "Jobs counted"), h("dd", {}, said.jobs.toLocaleString("en")), said.paused > 0 && h("dd", { class: "hint" }, `${said.paused.toLocaleString("en")} paused`), h("dd", { class: "hint" }, "at ", time.at(said.countedAt, time.minute))));
    draw(said);
  }

  function draw(said) {
    if (!said.peakBefore && !said.peakAfter) {
      put(chart, empty("Nothing starts on this day."));
    } else {
      put(chart, picture(said), h("p", { class: "legend" }, h("span", { class: "key before" }), "before spreading", h("span", { class: "key after" }), "as it will be",
        said.peakAfter && h("span", { class: "hint" }, ` · the busiest minute is ${said.peakAfter.local} with ${said.peakAfter.starts} starts`)),
        said.isPartial && h("p", { class: "hint" }, "There are too many starts to count them all: some jobs are left out."));
    }
    put(week, heat(said));
  }

  await refresh();
  return { title: "Load", node, refresh };
}

/** How far the counting is. */
function bar({ done, of }) {
  const words = `Counting: ${done.toLocaleString("en")} of ${of.toLocaleString("en")} jobs`;
  return h("p", { class: "counting" }, h("label", {}, words, " ", h("progress", { max: Math.max(of, 1), value: done })));
}

function picture(said) {
  // On a phone fewer words have room, and must be as large.
  const isNarrow = matchMedia("(max-width: 640px)").matches;
  const [width, height, foot] = isNarrow ? [360, 180, 24] : [1440, 220, 24];
  const minutes = said.before.length;
  const most = Math.max(1, ...said.before, ...said.after);
  const x = (minute) => (minute / minutes) * width;
  const y = (starts) => height - (starts / most) * (height - 12);
  const area = (starts) => {
    // Only where the height changes is there a corner.
    let path = `M0 ${height}`;
    let last = -1;
    for (let minute = 0; minute < minutes; minute++) {
      if (starts[minute] !== last) path += `H${x(minute).toFixed(1)}V${y(starts[minute]).toFixed(1)}`;
      last = starts[minute];
    }
    return `${path}H${width}V${height}z`;
  };
  const hours = [];
  const from = Date.parse(said.from);
  for (let minute = 0; minute <= minutes; minute += isNarrow ? 360 : 180) {
    hours.push(s("path", { class: "grid-line", d: `M${x(minute)} 0V${height}` }),
      !(isNarrow && minute === minutes) && s("text", { class: "axis", x: Math.min(x(minute) + 4, width - 46), y: height + 18 }, time.minute(from + minute * 60_000)));
  }
  const words = `Starts a minute on ${said.day}. Before spreading at most ${said.peakBefore?.starts || 0}, as it will be at most ${said.peakAfter?.starts || 0}.`;
  return s("svg", { class: "load-plot", viewBox: `0 0 ${width} ${height + foot}`, role: "img", "aria-label": words },
    hours,
    s("text", { class: "axis", x: 4, y: 12 }, `${most}`),
    s("path", { class: "area-before", d: area(said.before) }),
    s("path", { class: "area-after", d: area(said.after) }));
}

/** Seven days by twenty-four hours, in nine shades. */
function heat(said) {
  const most = Math.max(1, ...said.week.flatMap((day) => day.hours));
  const shade = (starts) => starts === 0 ? 0 : 1 + Math.min(7, Math.floor((starts / most) * 7.999));
  const isPeak = (day, hour) => said.peakWeek && said.peakWeek.day === day.day && said.peakWeek.hour === hour;
  const compact = (n) => n >= 10_000 ? `${Math.round(n / 1000)}k` : n.toLocaleString("en");
  const head = h("tr", {}, h("th", { scope: "col" }, "Day"), Array.from({ length: 24 }, (_, hour) => h("th", { scope: "col" }, String(hour).padStart(2, "0"))));
  const rows = said.week.map((day) => h("tr", {}, h("th", { scope: "row" }, `${day.name} ${day.day.slice(5)}`),
    day.hours.map((starts, hour) => h("td", { class: `heat heat-${shade(starts)}${isPeak(day, hour) ? " peak" : ""}`, title: `${day.day} ${String(hour).padStart(2, "0")}:00: ${starts.toLocaleString("en")} starts` }, starts ? compact(starts) : "·"))));
  const peak = said.peakWeek
    ? `The busiest hour is ${said.peakWeek.day} from ${String(said.peakWeek.hour).padStart(2, "0")}:00, with ${said.peakWeek.starts.toLocaleString("en")} starts.`
    : "Nothing starts in this week.";
  return [h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Starts an hour" }, h("table", { class: "heat-map" }, h("thead", {}, head), h("tbody", {}, rows))), h("p", { class: "hint" }, peak)];
}
