// croner for Node on the questions of kron-bench: `peer|question|nanoseconds` for each that it answers as Kron does.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { Cron } = await import(pathToFileURL(process.argv[2]).href);
// The best of so many rounds, of which the first warm its compiler up.
const ROUNDS = 50;

const questions = readFileSync(0, "utf8").trimEnd().split("\n").map((line) => line.split("|"));
questions.forEach(([expression, zone, pairs], number) => {
  const asked = pairs.trim().split(" ").map((pair) => pair.split(":").map(Number));
  let best = Infinity;
  try {
    const cron = new Cron(expression, { timezone: zone, paused: true });
    const starts = asked.map(([start]) => new Date(start * 1000));
    for (let round = 0; round < ROUNDS; round++) {
      const began = process.hrtime.bigint();
      const answers = starts.map((start) => cron.nextRun(start));
      const took = Number(process.hrtime.bigint() - began);
      if (!answers.every((answer, at) => answer && answer.getTime() === asked[at][1] * 1000)) return;
      best = Math.min(best, took);
    }
  } catch {
    return;
  }
  console.log(`croner for Node|${number}|${best / asked.length}`);
});
