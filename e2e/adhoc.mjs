import { browser, open, start } from "./world.mjs";
const AT = /dashboard at (http:\/\/[^/\s]+)/;
const demo = await start(`${process.env.CARGO_TARGET_DIR}/debug/krond`, ["demo"], AT);
const chrome = await browser();
try {
  for (const [name, viewport, scheme] of [["light", { width: 1280, height: 900 }, "light"], ["phone", { width: 390, height: 844 }, "dark"]]) {
    const context = await chrome.newContext({ viewport, colorScheme: scheme, timezoneId: "Europe/Paris" });
    const page = await open(context, demo.url, "#/jobs");
    await page.waitForSelector("tbody tr");
    await page.screenshot({ path: `/tmp/dash-shots/krond-jobs-${name}.png` });
    await page.click("a.job-name >> nth=0");
    await page.waitForSelector("button:text-is('Pause…')");
    await page.click("button:text-is('Pause…')");
    await page.waitForSelector("section.effect");
    await page.screenshot({ path: `/tmp/dash-shots/krond-effect-${name}.png` });
    await page.click("button:text-is('Pause it')");
    await page.waitForSelector("h1 .chip-paused");
    await page.click("button:text-is('Resume…')");
    await page.waitForSelector("section.effect");
    await page.screenshot({ path: `/tmp/dash-shots/krond-resume-${name}.png` });
    await page.click("button:text-is('Resume it')");
    await page.waitForSelector("h1:not(:has(.chip-paused))");
    await page.evaluate(() => { location.hash = "#/load"; });
    await page.waitForSelector(".heat");
    await page.screenshot({ path: `/tmp/dash-shots/krond-load-${name}.png` });
    await page.evaluate(() => { location.hash = "#/now"; });
    await page.waitForSelector(".number");
    await page.screenshot({ path: `/tmp/dash-shots/krond-now-${name}.png` });
    console.log(name, page.mistakes);
    await context.close();
  }
} finally { await chrome.close(); await demo.stop(); await demo.clean(); }
