// pg-boss 12, tuned: batches of 200, four at a time, LISTEN. Its completed rows are kept.
const { PgBoss } = require("pg-boss");

const connectionString = process.env.DATABASE_URL;
const count = Number(process.argv[2]);
const rate = (since) => `${Math.round(count / ((Date.now() - since) / 1000))}/s`;

async function main() {
  const boss = new PgBoss({ connectionString, max: 10, useListenNotify: true });
  boss.on("error", (error) => console.error(error.message));
  await boss.start();
  await boss.createQueue("noop", { notify: true, retryLimit: 0, partition: true });

  let started = Date.now();
  for (let at = 0; at < count; at += 2000) {
    await boss.insert("noop", Array.from({ length: Math.min(2000, count - at) }, (_, k) => ({ data: { id: at + k } })));
  }
  console.log("enqueue  ", rate(started));

  let done = 0, drained, next;
  const all = new Promise((resolve) => { drained = resolve; });
  const waits = [];
  started = Date.now();
  const options = { batchSize: 200, localConcurrency: 4, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true };
  await boss.work("noop", options, async (jobs) => {
    for (const { data } of jobs) {
      if (data.at) {
        waits.push(Number(process.hrtime.bigint() - BigInt(data.at)) / 1e6);
        next();
      } else if (++done === count) {
        drained();
      }
    }
  });
  await all;
  for (;;) {
    const { rows } = await boss.getDb().executeSql(
      "select exists (select from pgboss.job where name = 'noop' and state < 'completed') as is_left", []);
    if (!rows[0].is_left) break;
  }
  console.log("drain    ", rate(started));

  for (let n = 0; n < 200; n++) {
    const ran = new Promise((resolve) => { next = resolve; });
    await boss.send("noop", { at: String(process.hrtime.bigint()) });
    await ran;
  }
  waits.sort((a, b) => a - b);
  console.log(`latency   to the start p50 ${waits[99].toFixed(2)} ms, p99 ${waits[197].toFixed(2)} ms`);
  await boss.stop();
}

main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
