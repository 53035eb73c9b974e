// krond's dashboard: a process of its own, over the control socket.

import assert from "node:assert/strict";
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { accessible } from "./accessible.mjs";
import { browser, open, raw, start, until } from "./world.mjs";

const AT = /dashboard at (http:\/\/[^/\s]+)/;
const HOSTILE = "<img src=x onerror=alert(1)>\\033[31mred\\033[0m";

let home, program, daemon, chrome, context;
const running = [];

/** Starts a dashboard of the krond that runs. */
async function dashboard(...more) {
  const started = await start(program, ["dashboard", "--listen", "127.0.0.1:0", "--state-dir", join(home, "state"), ...more], AT);
  running.push(started);
  return started;
}

before(async () => {
  home = mkdtempSync(join(tmpdir(), "kron-e2e-krond-"));
  // Whoever the dashboard becomes must be able to read the krontabs.
  chmodSync(home, 0o755);
  // And to run the program, which may have been built where only root can go.
  program = join(home, "krond");
  copyFileSync(`${process.env.CARGO_TARGET_DIR}/debug/krond`, program);
  chmodSync(program, 0o755);
  mkdirSync(join(home, "krontabs"), { mode: 0o755 });
  writeFileSync(join(home, "out.log"), "", { mode: 0o644 });
  writeFileSync(join(home, "krontabs", "jobs"), [
    `@every 2s @policy(concurrency=allow,deadline=1m) name=pulse command="printf '${HOSTILE}\\n' >> ${join(home, "out.log")}" shell=true stdout=file:${join(home, "out.log")}`,
    "@every 3s @policy(concurrency=forbid,deadline=1s) name=slow command=\"/bin/sleep 5\"",
    "0 2 * * * @tz(Europe/Paris) @win(after,1h) @dist(normal) name=backup command=/bin/true description=\"Every night\"",
    "@every 4s @policy(deadline=1m) name=flaky command=\"exit 3\" shell=true",
    "",
  ].join("\n"), { mode: 0o644 });
  daemon = await start(program, ["start", "--foreground", "--config", join(home, "krontabs"), "--state-dir", join(home, "state")], /(ready|started|krond|running)/i);
  await until("the control socket is there", () => existsSync(join(home, "state", "control.sock")));
  chrome = await browser();
  context = await chrome.newContext({ timezoneId: "Europe/Paris" });
});
after(async () => {
  await chrome?.close();
  for (const one of running) await one.clean();
  await daemon?.clean();
  rmSync(home, { recursive: true, force: true });
});

async function visit(url, hash, body) {
  const page = await open(context, url, hash);
  await page.waitForSelector("main:not([aria-busy]) h1", { state: "attached" });
  await body(page);
  assert.deepEqual(page.mistakes, []);
  await page.close();
}
const identity = (name) => join(home, "krontabs", `jobs:${name}`);
const job = (name) => `#/job/${encodeURIComponent(identity(name))}`;

test("every view of a krond that works", async () => {
  const { url } = await dashboard();
  await visit(url, "#/now", async (page) => {
    await page.waitForSelector("text=krond, process");
    await page.waitForSelector("#live[data-state=live]");
    // Live: what goes wrong appears by itself.
    await page.waitForSelector("text=another run was still active");
    await page.waitForSelector(".chip-failed");
    assert.deepEqual(await accessible(page), []);
  });
  await visit(url, job("pulse"), async (page) => {
    await page.waitForSelector(".chip-succeeded");
    await page.click("button:text-is('Show') >> nth=0");
    const shown = await page.textContent(".terminal");
    assert.ok(shown.includes("<img src=x onerror=alert(1)>red"), shown);
    assert.equal(await page.locator("main img").count(), 0);
    await page.click("button:text-is('Run now')");
    await page.click("button:text-is('Really run it now?')");
    await page.waitForSelector("text=pulse is started");
    await page.waitForSelector("text=by hand");
    await page.click("button:text-is('Pause…')");
    await page.waitForSelector("text=These runs do not happen");
    assert.deepEqual(await accessible(page), []);
    await page.click("button:text-is('Pause it')");
    await page.waitForSelector("h1 .chip-paused");
    await page.waitForSelector("text=pulse is paused");
    // Its latest period is within its deadline: whoever resumes it is told that it starts at once.
    await page.click("button:text-is('Resume…')");
    await page.waitForSelector("text=/has come due, is within its deadline and starts at once/");
    await page.click("button:text-is('Resume it')");
    await page.waitForSelector("h1:not(:has(.chip-paused))");
    await page.waitForSelector("text=pulse runs again");
  });
  await visit(url, job("backup"), async (page) => {
    await page.waitForSelector("text=At 02:00 every day");
    await page.waitForSelector("text=Every night");
    await page.waitForSelector(".window-plot");
    assert.equal(await page.locator("section", { hasText: "Next runs" }).locator("tbody tr").count(), 10);
    assert.deepEqual(await accessible(page), []);
  });
  await visit(url, "#/timeline?hours=1", async (page) => {
    await page.waitForSelector(".tplot");
    await until("outcomes are drawn", async () => (await page.locator(".tplot").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")).join())).includes("skipped"));
  });
  await visit(url, "#/load", async (page) => {
    await page.waitForSelector("text=/the busiest minute is/");
  });
  await visit(url, `#/why?job=${encodeURIComponent(identity("backup"))}&at=2027-01-01T10:00:00Z`, async (page) => {
    await page.waitForSelector(".no:has-text('hour')");
  });
  await visit(url, "#/new", async (page) => {
    await page.fill("#f-cron", "30 25 * * *");
    await page.waitForSelector(".problem pre:has-text('^^')");
    await page.fill("#f-cron", "daily around 14:00");
    await page.fill("#f-window", "1h");
    await page.waitForSelector("text=/Written as .*@win\\(after,1h\\)/");
    assert.equal(await page.locator("button[type=submit]").count(), 0);
    assert.deepEqual(await accessible(page), []);
  });
});

test("a page that may only look", async () => {
  const { url } = await dashboard("--read-only");
  await visit(url, job("pulse"), async (page) => {
    assert.ok(await page.isDisabled("button:text-is('Run now')"));
    assert.ok(await page.isDisabled("button:text-is('Pause…')"));
  });
  for (const [what, words] of [["run", "run jobs"], ["pause", "pause jobs"], ["resume", "pause jobs"]]) {
    const body = JSON.stringify({ act: what, job: identity("pulse") });
    const answer = await raw(`${url}/dashboard/api/act`, { method: "POST", headers: { "Content-Type": "application/json" }, body });
    assert.deepEqual([answer.status, JSON.parse(answer.text).message], [403, `you may look at this server, but not ${words}`]);
  }
});

test("the process that serves is not root", { skip: process.getuid() !== 0 && "it is not root that starts it" }, async () => {
  const { url } = await dashboard();
  const port = Number(new URL(url).port).toString(16).toUpperCase().padStart(4, "0");
  const row = readFileSync("/proc/net/tcp", "utf8").split("\n").find((line) => line.includes(`0100007F:${port} 00000000:0000 0A`));
  assert.notEqual(row.trim().split(/\s+/)[7], "0");
});

test("names, other pages and broken requests get nowhere", async () => {
  const { url } = await dashboard();
  assert.equal((await raw(`${url}/dashboard/api/now`, { headers: { Host: "evil.test" } })).status, 421);
  const json = { "Content-Type": "application/json" };
  const body = JSON.stringify({ act: "run", job: identity("pulse") });
  const post = async (headers) => (await raw(`${url}/dashboard/api/act`, { method: "POST", headers, body })).status;
  assert.equal(await post({ ...json, Origin: "http://evil.test" }), 403);
  assert.equal(await post({ "Content-Type": "text/plain" }), 415);
  assert.equal((await raw(`${url}/dashboard/api/act`, { method: "POST", headers: json, body: "{}" })).status, 400);
  assert.equal((await raw(`${url}/dashboard/../../etc/passwd`)).status, 404);
  assert.equal((await raw(`${url}/dashboard/api/record?id=nobody`)).status, 404);
});

test("krond demo has a page too", async () => {
  const demo = await start(program, ["demo"], AT);
  try {
    await visit(demo.url, "#/now", async (page) => {
      await page.waitForSelector("#live[data-state=live]");
      await page.waitForSelector("text=tide");
      await page.waitForSelector("section:has-text('Running') .line");
    });
  } finally {
    await demo.stop();
    await until("its page is gone as well", async () => raw(demo.url).then(() => false, () => true));
    await demo.clean();
  }
});
