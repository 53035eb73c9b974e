// What axe finds wrong with a page, and would keep somebody from using it.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function accessible(page) {
  // Scripts of tests are evaluated beside the page's own, so that its policy stays as it is.
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, impact, help, nodes }) => ({ id, impact, help, where: nodes.slice(0, 4).map((node) => `${node.target.join(" ")} ${node.failureSummary}`) }));
  });
  return found.filter(({ impact }) => impact === "serious" || impact === "critical" || impact === "moderate");
}
