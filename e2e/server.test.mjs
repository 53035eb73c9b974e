// kron-server's dashboard: each view, each action, and what must not work.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { readFileSync } from "node:fs";
import { accessible } from "./accessible.mjs";
import { browser, elsewhere, open, raw, say, start, until } from "./world.mjs";

const program = `${process.env.CARGO_TARGET_DIR}/debug/kron-server`;
const LISTENING = /listening on (http:\S+)/;
// A Saturday; the night after it, clocks go forward in Paris.
const START = "2027-03-27T11:59:40Z";
const HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\u001b[31mred\u001b[0m\u001b]0;title\u0007\u202egnp.exe";

let server, chrome, context;

const clock = (now, running = false) => say(server.url, "/kron/v1/test/clock", { now, running }, "PUT");
const cron = (definition) => say(server.url, "/ojs/v1/cron", { type: "test.job", ...definition });
const api = async (path) => JSON.parse((await raw(`${server.url}/dashboard/api/${path}`)).text);

before(async () => {
  server = await start(program, ["--listen", "127.0.0.1:0", "--data", "HOME/data", "--test-mode"], LISTENING);
  chrome = await browser();
  context = await chrome.newContext({ timezoneId: "Europe/Paris", acceptDownloads: true });
  await clock(START);
  for (let nth = 0; nth < 60; nth++) {
    await cron({ name: `fleet-${String(nth).padStart(2, "0")}`, cron: "0 * * * *", kron: { window: { duration: "45m" } } });
  }
  await cron({ name: "nightly", cron: "30 2 * * *", timezone: "Europe/Paris", description: HOSTILE });
  await cron({ name: "minutely", cron: "* * * * *", options: { queue: "work" } });
  await cron({ name: "spread", cron: "0 12 * * *", kron: { window: { duration: "2h" }, distribution: { name: "normal" } } });
});
after(async () => { await chrome?.close(); await server?.clean(); });

/** Opens a view, does something there, and sees that the page itself made no mistake. */
function view(name, hash, body, options = {}) {
  test(name, { timeout: 150_000 }, async () => {
    const own = options.context ? await chrome.newContext(options.context) : context;
    const page = await open(own, server.url, hash);
    await page.waitForSelector("main:not([aria-busy]) h1", { state: "attached" });
    await body(page);
    assert.deepEqual(page.mistakes, []);
    await page.close();
    if (options.context) await own.close();
  });
}

view("now: what happens appears without a reload", "#/now", async (page) => {
  await page.waitForSelector("#live[data-state=live]");
  assert.equal(await page.textContent(".number:first-child dd"), "63");
  await page.waitForSelector("text=Nothing runs just now.");
  await clock("2027-03-27T12:00:00Z");
  const [job] = (await say(server.url, "/ojs/v1/workers/fetch", { queues: ["work"], worker_id: "hand" })).jobs;
  const running = page.locator("section", { hasText: "Running" }).locator(".line");
  await running.first().waitFor();
  assert.match(await running.first().textContent(), /minutely.*attempt 1 of 3, hand/);
  // The next minute finds it still at work.
  await clock("2027-03-27T12:01:00Z");
  await page.waitForSelector("text=the run before was still active");
  await say(server.url, "/ojs/v1/workers/nack", { job_id: job.id, error: { type: "io", code: "handler_error", message: HOSTILE, retryable: false, details: { backtrace: HOSTILE } } });
  await page.waitForSelector("text=Nothing runs just now.");
  await page.waitForSelector("text=/given up after attempt 1: <img/");
});

view("jobs: page by page, and by name", "#/jobs", async (page) => {
  await page.waitForSelector("text=1–25 of 63");
  await page.click("text=Next >> nth=-1");
  await page.waitForSelector("text=26–50 of 63");
  await page.fill("#search", "night");
  await page.waitForSelector("text=1–1 of 1");
  assert.equal(await page.textContent("tbody th .job-name"), "nightly");
  await page.fill("#search", "nothing-like-it");
  await page.waitForSelector("text=No job has “nothing-like-it” in its name.");
});

view("a job: what comes in two zones, how it is chosen, what became of it", "#/job/spread", async (page) => {
  await page.waitForSelector("text=At 12:00 every day");
  assert.equal(await page.locator("section", { hasText: "Next runs" }).locator("tbody tr").count(), 10);
  const chosen = page.locator("section", { hasText: "How the time is chosen" });
  for (const words of ["normal", "after,2h", "candidate 1 of at most 64", "u = 0."]) await chosen.locator(`text=${words}`).first().waitFor();
  const said = await api("job?id=spread");
  assert.equal(said.explained.seedHash.length, 64);
  await chosen.locator(`text=${said.explained.seedHash}`).waitFor();
});

view("a job: pause, resume, and run", "#/job/minutely", async (page) => {
  // What it would change is shown first, and nothing is done until it is confirmed.
  await page.click("button:text-is('Pause…')");
  const effect = page.locator("section.effect");
  await effect.locator("text=These runs do not happen").waitFor();
  assert.equal(await effect.locator("li").count(), 10);
  assert.deepEqual(await accessible(page), []);
  await effect.locator("button:text-is('Leave it')").click();
  await until("it is left", async () => (await effect.count()) === 0);
  assert.equal((await api("job?id=minutely")).job.paused, false);
  await page.click("button:text-is('Pause…')");
  await page.click("button:text-is('Pause it')");
  await page.waitForSelector("h1 .chip-paused");
  assert.equal((await api("job?id=minutely")).job.paused, true);
  await page.click("button:text-is('Resume…')");
  await effect.locator("text=These runs come").waitFor();
  await page.click("button:text-is('Resume it')");
  await page.waitForSelector("h1:not(:has(.chip-paused))");
  const before = (await api("work?job=minutely")).total;
  await page.click("button:text-is('Run now')");
  assert.equal((await api("work?job=minutely")).total, before, "one click asks");
  await page.click("button:text-is('Really run it now?')");
  await page.waitForSelector("text=minutely has a job more, in the queue work");
  assert.equal((await api("work?job=minutely")).total, before + 1);
});

view("a job: hostile output is shown and does nothing", "#/job/minutely", async (page) => {
  const row = page.locator("section", { hasText: "Runs" }).locator("tr", { hasText: "Failed" }).first();
  await row.locator("button:text-is('Show')").click();
  const shown = await page.textContent(".terminal");
  assert.ok(shown.includes("<img src=x onerror=alert(1)><script>alert(2)</script>red"), shown);
  assert.ok(!shown.includes("\u001b") && !shown.includes("\u202e") && !shown.includes("\u0007"), JSON.stringify(shown));
  assert.equal(await page.locator("main img, main script").count(), 0);
});

view("hostile names and descriptions are text as well", "#/job/nightly", async (page) => {
  await page.waitForSelector("text=<img src=x onerror=alert(1)>");
  assert.equal(await page.locator("main img, main script").count(), 0);
});

view("the form: every key tells what it means", "#/new", async (page) => {
  await page.fill("#f-cron", "30 25 * * *");
  await page.waitForSelector("#e-cron:has-text('25')");
  assert.match(await page.textContent(".problem pre"), /\| 30 25 \* \* \*\n\s+\|\s+\^\^/);
  assert.ok(await page.isDisabled("button[type=submit]"));
  await page.fill("#f-cron", "0 0 31 * *");
  await page.waitForSelector(".warning:has-text('there is no day 31')");
  await page.fill("#f-cron", "daily around 14:00");
  await page.waitForSelector("text=/Written as .*\\* \\* \\*/");
  await page.fill("#f-cron", "30 9 * * MON-FRI");
  await page.waitForSelector("text=At 09:30 on weekdays");
  await page.fill("#f-window", "soon");
  await page.waitForSelector("#e-window:has-text('soon')");
  await page.fill("#f-window", "30m");
  await page.fill("#f-name", "From the form");
  await page.waitForSelector("#e-name:has-text('expected a name')");
  await page.fill("#f-name", "minutely");
  await page.fill("#f-type", "form.made");
  await page.fill("#f-args", "[1, {\"big\": 12345678901234567890}]");
  await page.waitForSelector("button[type=submit]:not([disabled])");
  await page.click("button[type=submit]");
  await page.waitForSelector("#e-name:has-text('there is a cron job called `minutely` already')");
  await page.fill("#f-name", "from-the-form");
  await page.waitForSelector("button[type=submit]:not([disabled])");
  await page.click("button[type=submit]");
  await page.waitForSelector("h1:has-text('from-the-form')");
  const made = await raw(`${server.url}/ojs/v1/cron/from-the-form`);
  assert.match(made.text, /12345678901234567890/, "digits stay as they were");
  assert.equal(JSON.parse(made.text).cron_job.kron.window.duration, "30m");
});

view("an edit says which dates change before it counts", "#/edit/from-the-form", async (page) => {
  await page.waitForSelector("text=No date changes.");
  await page.fill("#f-cron", "30 9 * * MON-THU");
  await page.waitForSelector("text=These dates change");
  await page.waitForSelector(".removed");
  await page.click("button[type=submit]");
  await page.waitForSelector("h1:has-text('from-the-form')");
  await page.waitForSelector("code:text-is('30 9 * * MON-THU')");
});

view("the timeline: windows, outcomes with reasons, zoom, and the day when clocks change", "#/timeline?hours=24", async (page) => {
  await page.waitForSelector(".tplot");
  await page.fill("#search", "minutely");
  await page.waitForSelector("text=1–1 of 1");
  await page.click("button:text-is('Hour')");
  await until("the hour is drawn", async () => (await page.getAttribute(".tplot", "aria-label")).includes("skipped"));
  await page.focus(".tplot");
  await page.keyboard.press("Home");
  for (let nth = 0; nth < 3 && !(await page.textContent(".tip")).includes("the run before was still active"); nth++) await page.keyboard.press("ArrowRight");
  assert.match(await page.textContent(".tip"), /minutely.*Skipped.*the run before was still active/);
  // What was asked for before somebody began to walk comes late, and takes nobody back to the beginning.
  let arrive;
  const late = new Promise((done) => { arrive = done; });
  await page.route(/\/timeline\?/, async (route) => {
    const answer = await route.fetch();
    await late;
    await route.fulfill({ response: answer });
  });
  await page.keyboard.press("Escape");
  await page.click("button:text-is('Now')");
  await page.focus(".tplot");
  for (const key of ["Home", "ArrowRight"]) await page.keyboard.press(key);
  const second = await page.textContent(".tip");
  const [picture, answered] = [await page.$(".tplot"), page.waitForResponse(/\/timeline\?/)];
  arrive();
  await answered;
  await until("it is drawn anew", async () => !(await picture.evaluate((old) => old.isConnected)));
  await page.unroute(/\/timeline\?/);
  for (const key of ["ArrowRight", "ArrowLeft"]) await page.keyboard.press(key);
  assert.equal(await page.textContent(".tip"), second);
  await page.keyboard.press("Escape");
  assert.ok(await page.isHidden(".tip"));
  await page.fill("#search", "fleet-0");
  await page.waitForSelector(".twindow");
  await page.locator(".tplot .shape").first().hover({ force: true });
  await page.waitForSelector(".tip:not([hidden]):has-text('Window:')");
  await page.fill("#search", "nightly");
  await page.click("button:text-is('Week')");
  await page.waitForSelector(".notes li >> text=/Clocks change in Europe\\/Paris: .*28 Mar.* from \\+01:00 to \\+02:00/");
  await page.waitForSelector(".clock-change", { state: "attached" });
  await page.click("button:text-is('Month')");
  await until("a month is shown", async () => (await page.textContent(".range")).match(/Apr/));
});

view("the load: before and after, and the peak by name", "#/load", async (page) => {
  await page.waitForSelector(".load-plot");
  const said = await api("load?zone=Europe%2FParis");
  assert.ok(said.peakBefore.starts >= 60 && said.peakAfter.starts < 20, JSON.stringify([said.peakBefore, said.peakAfter]));
  assert.equal(said.before.length, 1440);
  assert.equal(said.week.length, 7);
  await page.waitForSelector(`text=the busiest minute is ${said.peakAfter.local} with ${said.peakAfter.starts} starts`);
  assert.equal(await page.locator(".heat").count(), 168);
  assert.equal(await page.locator(".heat.peak").count(), 1);
  // The day when clocks go forward has 23 hours.
  assert.equal((await api("load?zone=Europe%2FParis&day=2027-03-28")).before.length, 23 * 60);
});

view("why: a job, a time, and the answer", "#/why", async (page) => {
  await page.fill("#job", "minutely");
  await page.fill("#at", "2027-03-27T13:01:00");
  await page.click("button:text-is('Ask')");
  await page.waitForSelector(".answer:has-text('the run before was still active')");
  await page.fill("#job", "nightly");
  await page.fill("#at", "2027-03-27T15:45:00");
  await page.click("button:text-is('Ask')");
  await page.waitForSelector(".no:has-text('hour')");
  await page.fill("#job", "nobody");
  await page.click("button:text-is('Ask')");
  await page.waitForSelector(".problem:has-text('job `nobody` does not exist')");
});

view("queues: dead letters are requeued and removed, queues paused, jobs cancelled", "#/queues", async (page) => {
  const dead = async () => {
    await say(server.url, "/ojs/v1/jobs", { type: "mail.send", args: [HOSTILE], options: { queue: "mail", retry: { max_attempts: 1, on_exhaustion: "dead_letter" } } });
    const [job] = (await say(server.url, "/ojs/v1/workers/fetch", { queues: ["mail"], worker_id: "hand" })).jobs;
    await say(server.url, "/ojs/v1/workers/nack", { job_id: job.id, error: { type: "smtp", code: "handler_error", message: HOSTILE, retryable: false } });
    return job.id;
  };
  const [first, second] = [await dead(), await dead()];
  await page.check("#dead");
  await page.waitForSelector(`tr[data-row="${first}"]`);
  await page.click(`tr[data-row="${first}"] button:text-is('Requeue')`);
  await page.waitForSelector("text=the job is tried anew");
  await page.waitForSelector(`tr[data-row="${first}"]`, { state: "detached" });
  await page.click(`tr[data-row="${second}"] button:text-is('Remove')`);
  await page.click(`tr[data-row="${second}"] button:text-is('Really remove?')`);
  await page.waitForSelector("text=No dead letters.");
  await page.uncheck("#dead");
  await page.selectOption("#queue", "mail");
  await page.click(`tr[data-row="${first}"] button:text-is('Cancel')`);
  await page.click(`tr[data-row="${first}"] button:text-is('Really cancel?')`);
  await page.waitForSelector(`tr[data-row="${first}"] .chip-cancelled`);
  await page.click("button[aria-label='Pause the queue mail']");
  await page.waitForSelector("tr[data-row=mail] .chip-paused");
  assert.equal(JSON.parse((await raw(`${server.url}/ojs/v1/queues/mail/stats`)).text).queue.paused ?? true, true);
  await page.click("button[aria-label='Resume the queue mail']");
  await page.waitForSelector("tr[data-row=mail]:not(:has(.chip-paused))");
  assert.equal(await page.locator("main img, main script").count(), 0);
});

view("every table can be taken along, and the schedule as a calendar", "#/jobs", async (page) => {
  const saved = async (selector) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.click(selector)]);
    return [download.suggestedFilename(), readFileSync(await download.path(), "utf8")];
  };
  const [name, csv] = await saved("button[aria-label='Save jobs as CSV']");
  assert.equal(name, "kron-jobs.csv");
  assert.match(csv, /^id,name,schedule,words,zone,/);
  assert.equal(csv.trim().split("\r\n").filter((line) => /^(fleet|minutely|nightly|spread|from)/.test(line)).length, 64);
  const [, json] = await saved("button[aria-label='Save jobs as JSON']");
  assert.equal(JSON.parse(json).total, 64);
  for (const path of ["record.csv?id=minutely", "runs.csv?id=minutely", "next.csv?id=minutely", "queues.csv", "work.csv", "load.csv", "timeline.csv?from=2027-03-27T12:00:00Z&to=2027-03-27T13:00:00Z"]) {
    const answer = await raw(`${server.url}/dashboard/api/${path}`);
    assert.equal(answer.status, 200, path);
    assert.match(answer.headers["content-type"], /text\/csv/);
    assert.ok(answer.text.split("\r\n").length > 2, path);
  }
  const calendar = await raw(`${server.url}/dashboard/api/schedule.ics`);
  assert.match(calendar.text, /^BEGIN:VCALENDAR\r\n/);
  assert.ok(calendar.text.match(/BEGIN:VEVENT/g).length > 100);
});

for (const [words, options] of [["light", { colorScheme: "light" }], ["dark", { colorScheme: "dark" }], ["a phone", { viewport: { width: 390, height: 844 }, colorScheme: "light" }]]) {
  view(`every view is accessible: ${words}`, "#/now", async (page) => {
    for (const [hash, ready] of [["#/now", ".line"], ["#/timeline?hours=6", ".tplot"], ["#/load", ".heat"], ["#/jobs", "tbody tr"], ["#/job/spread", ".window-plot"], ["#/job/minutely", ".chip-failed"], ["#/new", "#f-cron"], ["#/edit/nightly", ".said .lead"], ["#/why?job=minutely&at=2027-03-27T12:01:00Z", ".answer"], ["#/queues", ".pager"], ["#/nowhere", ".problem"]]) {
      await page.evaluate((to) => { location.hash = to; }, hash);
      await page.waitForSelector(ready, { state: "attached" });
      assert.deepEqual(await accessible(page), [], hash);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(overflow <= 0, `${hash} is ${overflow} pixels too wide`);
    }
  }, { context: { timezoneId: "Europe/Paris", ...options } });
}

view("the keyboard alone is enough", "#/job/minutely", async (page) => {
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to content");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Run now");
});

view("who may not is told so, and signing in helps", "#/now", async (page) => {
  // The answers of a server that asks for tokens.
  const asked = [];
  await page.route(/\/dashboard\/api\//, async (route) => {
    const token = route.request().headers().authorization;
    asked.push(token);
    if (token !== "Bearer kron_secret") return route.fulfill({ status: 401, json: { error: { code: "unauthenticated", message: "expected a token" } } });
    if (route.request().method() === "POST") return route.fulfill({ status: 403, json: { error: { code: "forbidden", message: "the token may not do that", hint: "ask for one with the scope admin" } } });
    return route.fallback();
  });
  await page.reload();
  await page.waitForSelector("#sign-in:has-text('expected a token')");
  await page.fill("#token", "wrong");
  await page.click("#sign-in button");
  await until("it is asked for again", async () => (await page.locator("#sign-in").count()) === 1 && (await page.inputValue("#token")) === "");
  await page.fill("#token", "kron_secret");
  await page.click("#sign-in button");
  await page.waitForSelector(".number");
  assert.equal(await page.evaluate(() => localStorage.length), 0);
  await page.evaluate(() => { location.hash = "#/job/minutely"; });
  await page.click("button:text-is('Pause…')");
  await page.click("button:text-is('Pause it')");
  await page.waitForSelector(".toast.bad:has-text('the token may not do that. ask for one with the scope admin')");
});

test("other names and other pages get nowhere", async () => {
  const page = `${server.url}/dashboard/`;
  const port = new URL(server.url).port;
  for (const host of ["evil.test", `127.0.0.1.nip.io:${port}`, "localhost", `localhost:${Number(port) + 1}`]) {
    for (const path of ["", "api/now", "api/live"]) {
      assert.equal((await raw(`${page}${path}`, { headers: { Host: host } })).status, 421, `${host} ${path}`);
    }
  }
  const act = JSON.stringify({ act: "run", job: "minutely" });
  const post = async (headers) => (await raw(`${page}api/act`, { method: "POST", headers, body: act })).status;
  const json = { "Content-Type": "application/json" };
  assert.equal(await post({ ...json, Origin: "http://evil.test" }), 403);
  assert.equal(await post({ ...json, Origin: "null" }), 403);
  assert.equal(await post({ ...json, "Sec-Fetch-Site": "cross-site" }), 403);
  assert.equal(await post({ "Content-Type": "text/plain" }), 415);
  const { headers } = await raw(page);
  assert.match(headers["content-security-policy"], /default-src 'none'; script-src 'self';/);
  assert.equal(headers["x-content-type-options"], "nosniff");
  assert.equal(headers["access-control-allow-origin"], undefined);
  for (const path of ["..%2fCargo.toml", "../../etc/passwd", "api/../../x", "app.js%00"]) {
    assert.equal((await raw(`${page}${path}`)).status, 404, path);
  }
});

test("a page elsewhere can neither run a job nor read one", async () => {
  const before = (await api("work?job=minutely")).total;
  const target = `${server.url}/dashboard/api/act`;
  const evil = await elsewhere(`<!doctype html><title>evil</title><form method="post" enctype="text/plain" action="${target}" target="frame"><input name='{"act":"run","job":"minutely","x":"' value='"}'></form><iframe name="frame"></iframe>
    <script>
      document.forms[0].submit();
      const body = JSON.stringify({ act: "run", job: "minutely" });
      const tries = [
        fetch("${target}", { method: "POST", mode: "no-cors", body }),
        fetch("${target}", { method: "POST", headers: { "Content-Type": "application/json" }, body }),
        fetch("${server.url}/dashboard/api/now").then((r) => r.text()).then((t) => { window.stolen = t; }),
      ];
      Promise.allSettled(tries).then(() => { window.tried = true; });
    </script>`);
  const page = await context.newPage();
  await page.goto(evil.url);
  await page.waitForFunction(() => window.tried);
  assert.equal(await page.evaluate(() => window.stolen), undefined);
  await page.goto(`${evil.url}`);
  await page.waitForFunction(() => window.tried);
  assert.equal((await api("work?job=minutely")).total, before);
  await page.close();
  await evil.close();
});

test("a connection that is lost comes back by itself", async () => {
  const page = await open(context, server.url, "#/jobs");
  await page.waitForSelector("text=1–25 of 64");
  await page.waitForSelector("#live[data-state=live]");
  const address = new URL(server.url).host;
  await server.stop();
  await page.waitForSelector("#live[data-state=lost]");
  await page.fill("#search", "x");
  await page.waitForSelector(".problem:has-text('the server does not answer')");
  const old = server;
  server = await start(program, ["--listen", address, "--data", `${old.home}/data`, "--test-mode"], LISTENING);
  await clock("2027-03-27T12:02:00Z");
  await page.waitForSelector("#live[data-state=live]");
  await page.fill("#search", "");
  await page.waitForSelector("text=1–25 of 64");
  await page.close();
  const stop = server.clean;
  server.clean = async () => { await stop(); await old.clean(); };
});
