// A real server, a real browser, and what people do in it.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, request as ask } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

/** The longest that anybody waits for anything. */
export const PATIENCE = 60_000;

export async function browser() {
  return chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", headless: true, args: FLAGS });
}

/** Starts a program and waits for the line that says where it listens. */
export async function start(program, args, pattern) {
  const home = mkdtempSync(join(tmpdir(), "kron-e2e-"));
  const child = spawn(program, args.map((arg) => arg.replace("HOME", home)), { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  const url = await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${program} said nothing of use:\n${said}`)), PATIENCE);
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        said += `${line}\n`;
        const found = pattern.exec(line);
        if (found) { clearTimeout(timer); resolve(found[1]); }
      });
    }
    child.on("exit", (code) => { clearTimeout(timer); reject(new Error(`${program} ended with ${code}:\n${said}`)); });
  });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  return {
    url, home, said: () => said,
    stop: async () => { child.kill("SIGTERM"); await ended; },
    clean: async () => { if (child.exitCode === null) { child.kill("SIGKILL"); await ended; } rmSync(home, { recursive: true, force: true }); },
  };
}

/** A request as no browser would send it. */
export function raw(url, { method = "GET", headers = {}, body } = {}) {
  return new Promise((resolve, reject) => {
    const sent = ask(url, { method, headers }, (response) => {
      let text = "";
      response.on("data", (data) => { text += data; });
      response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, text }));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

/** JSON to the server's own API. */
export async function say(url, path, body, method = "POST") {
  const answer = await raw(`${url}${path}`, { method, headers: { "Content-Type": "application/json" }, body: body === undefined ? undefined : JSON.stringify(body) });
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
  return JSON.parse(answer.text);
}

/** A page that tells of every mistake of its own. `KRON_ASSETS` names a directory that is shown instead of what is built in. */
export async function open(context, url, hash = "#/now") {
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.mistakes = [];
  page.on("pageerror", (error) => page.mistakes.push(`${error.message}`));
  page.on("console", (message) => {
    // What the server refuses on purpose is told by the browser too.
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) page.mistakes.push(message.text());
  });
  page.on("dialog", (dialog) => { page.mistakes.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
  if (process.env.KRON_ASSETS) {
    await page.route(/\/dashboard\/([a-z]+\.(js|css|html|svg))?(#.*)?$/, async (route) => {
      const name = new URL(route.request().url()).pathname.split("/").pop() || "index.html";
      try {
        await route.fulfill({ response: await route.fetch(), body: readFileSync(join(process.env.KRON_ASSETS, name)) });
      } catch {
        await route.abort().catch(() => {});
      }
    });
  }
  await page.goto(`${url}/dashboard/${hash}`);
  return page;
}

/** A server on another origin, with a page on it. */
export async function elsewhere(html) {
  const server = createServer((_, response) => { response.setHeader("Content-Type", "text/html"); response.end(html); });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => new Promise((resolve) => server.close(resolve)) };
}

/** Waits until something holds. */
export async function until(words, holds) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    if (await holds()) return;
    if (Date.now() > end) throw new Error(`it never came to be that ${words}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
