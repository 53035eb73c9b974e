// Pictures of every view, for people to look at: node shots.mjs OUT [server|krond]

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { browser, open, say, start, until } from "./world.mjs";

const [out = "/tmp/shots", which = "server"] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
const target = process.env.CARGO_TARGET_DIR;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const JOBS = [
  ["backup-database", "0 * * * *", "45m", "storage", "Dumps every shard"],
  ["backup-files", "0 */2 * * *", "90m", "storage", "Snapshots of the file store"],
  ["billing-invoices", "30 2 * * *", "1h", "billing", "Invoices of the day"],
  ["billing-reminders", "15 9 * * MON-FRI", "30m", "billing", "Reminders, on working days"],
  ["cache-warm", "*/20 * * * *", "10m", "default", "Keeps the front page quick"],
  ["certificates-renew", "0 4 * * *", "2h", "default", "Renews what expires soon"],
  ["crm-sync", "*/15 * * * *", "8m", "sync", "Contacts from the CRM"],
  ["feed-import", "*/10 * * * *", null, "sync", "Prices from suppliers"],
  ["health-report", "0 7-19 * * *", "20m", "default", "Hourly, by day"],
  ["logs-rotate", "0 3 * * *", "1h", "storage", null],
  ["mail-digest", "0 8 * * *", "40m", "mail", "The morning digest"],
  ["metrics-rollup", "*/30 * * * *", "12m", "default", "Half-hourly sums"],
  ["search-reindex", "0 1 * * SUN", "3h", "storage", "The whole index"],
  ["sessions-clean", "45 * * * *", "10m", "default", "Forgets old sessions"],
  ["tenant-usage", "0 */3 * * *", "2h", "billing", "Counts what tenants use"],
];

/** Six hours in the life of a server, told in a few seconds: some runs fail, some take too long. */
async function story(url) {
  const clock = (at, running = false) => say(url, "/kron/v1/test/clock", { now: new Date(at).toISOString(), running }, "PUT");
  let now = Date.parse("2027-03-27T06:10:00Z");
  await clock(now);
  for (const [name, cron, window, queue, description] of JOBS) {
    await say(url, "/ojs/v1/cron", { name, cron, timezone: "Europe/Paris", type: `${name.split("-")[0]}.run`, description, options: { queue, retry: { max_attempts: 2, initial_interval: "PT2M", on_exhaustion: "dead_letter" } }, ...(window ? { kron: { window: { duration: window } } } : {}) });
  }
  const queues = ["storage", "billing", "default", "sync", "mail"];
  const held = [];
  for (let step = 0; step < 340; step++) {
    // Whoever has jobs is heard of in time.
    for (let part = 0; part < (held.length ? 3 : 1); part++) {
      now += held.length ? 20_000 : 60_000;
      await clock(now);
      if (held.length) await say(url, "/ojs/v1/workers/heartbeat", { worker_id: "worker-1", active_jobs: held.map((job) => job.id), hostname: "app-1" });
    }
    for (const job of (await say(url, "/ojs/v1/workers/fetch", { queues, count: 20, worker_id: "worker-1" })).jobs) {
      const name = job.type.split(".")[0];
      held.push({ id: job.id, name, ends: step + (name === "feed" && step % 60 > 35 ? 24 : 1 + (step % 3)) });
    }
    for (const job of held.filter((one) => one.ends <= step)) {
      held.splice(held.indexOf(job), 1);
      const fails = (job.name === "crm" && step % 7 === 0) || (job.name === "mail");
      await say(url, fails ? "/ojs/v1/workers/nack" : "/ojs/v1/workers/ack", fails
        ? { job_id: job.id, error: { type: "connection", code: "handler_error", message: "the partner did not answer within 30 s" } }
        : { job_id: job.id, result: { rows: 40 + (step % 17) } }).catch(() => {});
    }
  }
  await clock(now, true);
}

const program = which === "server"
  ? await start(`${target}/debug/kron-server`, ["--test-mode", "--data", "HOME/data", "--listen", "127.0.0.1:0"], /listening on (http:\S+)/)
  : await start(`${target}/debug/krond`, ["demo"], /dashboard at (http:\/\/[^/\s]+)/);
const chrome = await browser();
try {
  if (which === "server") await story(program.url);
  else await pause(40_000);
  const named = which === "server" ? "crm-sync" : "slow";
  const first = await open(await chrome.newContext(), program.url);
  await first.waitForSelector(".line");
  const id = await first.evaluate(async (name) => (await (await fetch(`api/jobs?search=${name}`)).json()).rows[0].id, named);
  const spread = which === "server" ? "backup-database" : await first.evaluate(async () => (await (await fetch("api/jobs?search=tide")).json()).rows[0].id);
  const record = await first.evaluate(async (job) => (await (await fetch(`api/record?id=${encodeURIComponent(job)}`)).json()).rows, id);
  const asked = record.find((row) => row.mark !== "succeeded") || record[0];
  const views = {
    now: "#/now", timeline: which === "server" ? "#/timeline?hours=6" : "#/timeline?hours=1", load: "#/load", jobs: "#/jobs", job: `#/job/${encodeURIComponent(spread)}`,
    new: "#/new", why: `#/why?job=${encodeURIComponent(id)}&at=${asked.nominal}`,
    ...(which === "server" ? { week: "#/timeline?hours=168", queues: "#/queues", dead: "#/queues?dead=true", edit: "#/edit/billing-reminders" } : {}),
  };
  const only = process.env.SHOTS?.split(",");
  for (const [scheme, width, height] of [["light", 1280, 800], ["dark", 1280, 800], ["light", 390, 844]]) {
    const context = await chrome.newContext({ colorScheme: scheme, viewport: { width, height }, timezoneId: "Europe/Paris" });
    for (const [name, hash] of Object.entries(views)) {
      const file = `${which === "server" ? "" : "krond-"}${name}-${width < 500 ? "phone" : scheme}`;
      if (only && !only.includes(file)) continue;
      const page = await open(context, program.url, hash);
      await page.waitForSelector("main:not([aria-busy]) h1", { state: "attached" });
      if (name === "new") await page.fill("#f-cron", "30 9 31 * MON-FRI");
      if (name === "edit") await page.fill("#f-cron", "15 9 * * MON-THU");
      await until("it is live", () => page.locator("#live[data-state=live]").count());
      await pause(500);
      await page.screenshot({ path: join(out, `${file}.png`), fullPage: width > 500 && name !== "queues" });
      if (page.mistakes.length) console.log(name, page.mistakes);
      await page.close();
    }
    await context.close();
  }
} finally {
  await chrome.close();
  await program.stop();
  await program.clean();
}
