// Pictures of every view, for people to look at: node shots.mjs OUT [server|krond]

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { browser, open, say, start } from "./world.mjs";

const [out = "/tmp/shots", which = "server"] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
const target = process.env.CARGO_TARGET_DIR;
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const program = which === "server"
  ? await start(`${target}/debug/kron-server`, ["--demo", "--listen", "127.0.0.1:0"], /listening on (http:\S+)/)
  : await start(`${target}/debug/krond`, ["demo"], /dashboard\S* (http:\/\/\S+?)\/?(?:dashboard\/)?$/);
const chrome = await browser();
try {
  if (which === "server") {
    for (let nth = 0; nth < 40; nth++) {
      const window = nth % 3 === 0 ? {} : { kron: { window: { duration: nth % 2 ? "45m" : "2h" } } };
      await say(program.url, "/ojs/v1/cron", { name: `report-${String(nth).padStart(2, "0")}`, cron: nth % 4 ? "0 * * * *" : "0 2 * * *", timezone: "Europe/Paris", type: "report.make", ...window });
    }
    await say(program.url, "/ojs/v1/jobs", { type: "mail.send", args: [{ to: "a@example.test" }], options: { queue: "mail", retry: { max_attempts: 1, on_exhaustion: "dead_letter" } } });
    const [job] = (await say(program.url, "/ojs/v1/workers/fetch", { queues: ["mail"], worker_id: "mailer-1" })).jobs;
    await say(program.url, "/ojs/v1/workers/nack", { job_id: job.id, error: { code: "handler_error", type: "smtp", message: "the mail server said 550", retryable: false } });
  }
  await wait(Number(process.env.WARM || 25_000));
  const job = which === "server" ? "slow-report" : "slow";
  const first = await open(await chrome.newContext(), program.url);
  await first.waitForSelector(".line");
  const views = {
    now: "#/now", timeline: "#/timeline?hours=1", load: "#/load", jobs: "#/jobs", job: "", new: "#/new", why: "", ...(which === "server" ? { queues: "#/queues", dead: "#/queues?dead=true", edit: "#/edit/nightly-summary" } : {}),
  };
  const id = await first.evaluate(async (name) => (await (await fetch(`api/jobs?search=${name}`)).json()).rows[0].id, job);
  views.job = `#/job/${encodeURIComponent(id)}`;
  views.why = `#/why?job=${encodeURIComponent(id)}&at=${new Date(Date.now() - 10_000).toISOString().slice(0, 18)}0Z`;
  for (const [scheme, width, height] of [["light", 1280, 800], ["dark", 1280, 800], ["light", 390, 844]]) {
    const context = await chrome.newContext({ colorScheme: scheme, viewport: { width, height }, timezoneId: "Europe/Paris" });
    for (const [name, hash] of Object.entries(views)) {
      const page = await open(context, program.url, hash);
      await page.waitForSelector("main:not([aria-busy]) h1");
      if (name === "new" || name === "edit") await page.fill("#f-cron", which === "server" ? "30 9 31 * MON-FRI" : "30 9 31 * MON-FRI");
      await wait(600);
      await page.screenshot({ path: join(out, `${name}-${width < 500 ? "phone" : scheme}.png`), fullPage: width > 500 });
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
