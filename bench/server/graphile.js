// graphile-worker, a public job queue on PostgreSQL: how many jobs it takes in, and works off, a second.
//   node graphile.js URL WORKERS JOBS-EACH
const { makeWorkerUtils, run } = require("graphile-worker");

async function main() {
  const [connectionString, workers, each] = process.argv.slice(2);
  const [concurrency, count] = [Number(workers), Number(workers) * Number(each)];
  const text = "a message of some length, as applications send them, with a name and an address in it";
  const payload = { to: "somebody@example.org", subject: text, body: text };
  const utils = await makeWorkerUtils({ connectionString, maxPoolSize: concurrency });
  await utils.migrate();
  let began = performance.now();
  const adder = async () => {
    for (let n = 0; n < Number(each); n++) await utils.addJob("work", payload);
  };
  await Promise.all(Array.from({ length: concurrency }, adder));
  const adding = (performance.now() - began) / 1000;
  await utils.release();

  let left = count;
  let ended;
  const all = new Promise((resolve) => (ended = resolve));
  began = performance.now();
  const work = async () => {
    if (--left === 0) ended();
  };
  const quiet = new (require("graphile-worker").Logger)(() => () => {});
  const runner = await run({
    connectionString, concurrency, maxPoolSize: concurrency + 2, noHandleSignals: true, logger: quiet, taskList: { work },
  });
  await all;
  // That the last of them are done is still to be written.
  const working = (performance.now() - began) / 1000;
  await runner.stop();
  console.log(count / adding, count / working);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
