// kron-server with tokens: what somebody may do in the page is what their token allows.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { browser, open, raw, start, until } from "./world.mjs";

const program = `${process.env.CARGO_TARGET_DIR}/debug/kron-server`;
let home, server, chrome, tokens;

before(async () => {
  home = mkdtempSync(join(tmpdir(), "kron-e2e-tokens-"));
  const create = (scope) => execFileSync(program, ["token", "create", "--name", `${scope}-page`, "--scope", scope, "--data", join(home, "data")], { encoding: "utf8" }).match(/kron_\S+/)[0];
  tokens = { calendar: create("calendar"), read: create("read"), enqueue: create("enqueue"), admin: create("admin") };
  server = await start(program, ["--listen", "127.0.0.1:0", "--data", join(home, "data")], /listening on (http:\S+)/);
  const made = await raw(`${server.url}/ojs/v1/cron`, { method: "POST", headers: { "Content-Type": "application/json", Authorization: `Bearer ${tokens.admin}` }, body: JSON.stringify({ name: "nightly", cron: "30 2 * * *", type: "test.job" }) });
  assert.equal(made.status, 201, made.text);
  chrome = await browser();
});
after(async () => { await chrome?.close(); await server?.clean(); rmSync(home, { recursive: true, force: true }); });

const act = async (token, what) => (await raw(`${server.url}/dashboard/api/act`, { method: "POST", headers: { "Content-Type": "application/json", ...(token ? { Authorization: `Bearer ${token}` } : {}) }, body: JSON.stringify({ act: what, job: "nightly" }) })).status;

test("without a token there is the page, and nothing in it", async () => {
  assert.equal((await raw(`${server.url}/dashboard/`)).status, 200);
  for (const path of ["about", "now", "jobs", "jobs.csv", "live", "schedule.ics", "timeline", "load"]) {
    assert.equal((await raw(`${server.url}/dashboard/api/${path}`)).status, 401, path);
  }
  assert.equal(await act(null, "run"), 401);
  assert.equal(await act("kron_nonsense", "run"), 401);
});

test("each scope allows its own", async () => {
  assert.deepEqual([await act(tokens.read, "run"), await act(tokens.read, "pause")], [403, 403]);
  assert.deepEqual([await act(tokens.admin, "run"), await act(tokens.admin, "pause"), await act(tokens.admin, "resume")], [200, 200, 200]);
});

test("a calendar is read by its address, and by nothing else", async () => {
  const at = (path, token) => raw(`${server.url}/dashboard/api/${path}?token=${token}`);
  const calendar = await at("schedule.ics", tokens.calendar);
  assert.deepEqual([calendar.status, calendar.headers["content-type"]], [200, "text/calendar; charset=utf-8"]);
  assert.ok(calendar.text.startsWith("BEGIN:VCALENDAR\r\n") && calendar.text.includes("\r\nSUMMARY:nightly\r\n"), calendar.text);
  // The address opens nothing else, and no other token works in it.
  for (const path of ["about", "now", "jobs", "jobs.csv", "live", "load"]) assert.equal((await at(path, tokens.calendar)).status, 401, path);
  for (const token of [tokens.read, tokens.admin]) assert.equal((await at("schedule.ics", token)).status, 403);
  for (const token of ["", "kron_nonsense", `${tokens.calendar}0`, "%0d%0aa"]) assert.equal((await at("schedule.ics", token)).status, 401, token);
  const headers = { Authorization: `Bearer ${tokens.calendar}` };
  for (const path of ["/dashboard/api/jobs", "/ojs/v1/cron"]) assert.equal((await raw(`${server.url}${path}`, { headers })).status, 403, path);
  for (const secret of Object.values(tokens)) assert.ok(!server.said().includes(secret.slice(5)), "no secret is logged");
});

test("what is done and refused in the page is in the log, under the name of the request", async () => {
  const ask = () => raw(`${server.url}/dashboard/api/about`, { headers: { "X-Request-Id": "seen-by-page" } });
  const answer = await ask();
  assert.deepEqual([answer.status, answer.headers["x-request-id"], answer.headers["ojs-version"]], [401, "seen-by-page", undefined]);
  assert.match(answer.headers["www-authenticate"], /^Bearer /);
  // Of very many refusals in a second only some are written down.
  await until("it is refused in the log", async () => { await ask(); return /refused .*seen-by-page/.test(server.said()); });
  assert.equal(await act(tokens.admin, "run"), 200);
  await until("it is done in the log", () => /an admin act by="admin-page" .*path="\/dashboard\/api\/act" what="Run \{ job: \\"nightly\\" \}"/.test(server.said()));
});

test("who may only look sees that, and who may do everything can", async () => {
  const context = await chrome.newContext();
  const page = await open(context, server.url, "#/job/nightly");
  await page.fill("#token", tokens.read);
  await page.click("#sign-in button");
  await page.waitForSelector("h1:has-text('nightly')");
  assert.ok(await page.isDisabled("button:text-is('Run now')"));
  assert.ok(await page.isDisabled("button:text-is('Pause…')"));
  await page.waitForSelector("#live[data-state=live]");
  await page.evaluate((token) => sessionStorage.setItem("kron-token", token), tokens.admin);
  await page.reload();
  await page.click("button:text-is('Pause…')");
  await page.click("button:text-is('Pause it')");
  await page.waitForSelector("h1 .chip-paused");
  assert.deepEqual(page.mistakes, []);
  await context.close();
});
