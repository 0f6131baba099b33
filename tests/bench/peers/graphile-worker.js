// graphile-worker 0.18, tuned: batch claims into a local queue, batched completions, LISTEN. Its rows are deleted.
const { run, makeWorkerUtils, Logger } = require("graphile-worker");
const { Pool } = require("pg");

const connectionString = process.env.DATABASE_URL;
const count = Number(process.argv[2]);
const logger = new Logger(() => () => {});
const rate = (since) => `${Math.round(count / ((Date.now() - since) / 1000))}/s`;

async function main() {
  const utils = await makeWorkerUtils({ connectionString, logger });
  await utils.migrate();
  const pool = new Pool({ connectionString });

  let started = Date.now();
  for (let at = 0; at < count; at += 5000) {
    const jobs = Array.from({ length: Math.min(5000, count - at) }, (_, k) => (
      { identifier: "noop", payload: { id: at + k } }));
    await pool.query("select 1 from graphile_worker.add_jobs(array(select json_populate_recordset(" +
      "null::graphile_worker.job_spec, $1::json)))", [JSON.stringify(jobs)]);
  }
  console.log("enqueue  ", rate(started));

  let done = 0, drained, next;
  const all = new Promise((resolve) => { drained = resolve; });
  const waits = [];
  started = Date.now();
  const runner = await run({
    noHandleSignals: true,
    logger,
    preset: { worker: { connectionString, concurrentJobs: 24, maxPoolSize: 10, localQueue: { size: 500 },
      completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
    taskList: {
      noop: async () => { if (++done === count) drained(); },
      timed: async ({ at }) => { waits.push(Number(process.hrtime.bigint() - BigInt(at)) / 1e6); next(); },
    },
  });
  await all;
  for (;;) {
    const { rows } = await pool.query("select exists (select from graphile_worker._private_jobs) as is_left");
    if (!rows[0].is_left) break;
  }
  console.log("drain    ", rate(started));

  for (let n = 0; n < 500; n++) {
    const ran = new Promise((resolve) => { next = resolve; });
    await pool.query("select graphile_worker.add_job('timed', json_build_object('at', $1::text))",
      [String(process.hrtime.bigint())]);
    await ran;
  }
  waits.sort((a, b) => a - b);
  console.log(`latency   to the start p50 ${waits[249].toFixed(2)} ms, p99 ${waits[494].toFixed(2)} ms`);
  await runner.stop();
  await pool.end();
  await utils.release();
}

main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
