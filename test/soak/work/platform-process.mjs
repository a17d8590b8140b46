// One process of a platform: takes webhooks into its inbox, settles payouts and reports their outcomes, and works on both.
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { createOutcomes } from "countersign/outcomes";
import { createInbox, webhookEndpoint } from "countersign/webhooks";
import { TaskError } from "@countersign/idempotency/work";
import express from "express";
import { engines } from "./engines.mjs";
import { credentials, settlePath, webhookPath } from "./wire.mjs";

// The kills refuse a great deal; the report counts it.
process.env.COUNTERSIGN_STDERR ??= "off";
process.once("disconnect", () => process.exit(0));

const { engine, location, receiverUrl } = JSON.parse(process.env.SOAK_PAYER);
const { stores, apply, settle } = await engines[engine].open(location);

// A fault is over soon, and a kill counts as an attempt.
const times = {
  leaseMs: 1_000,
  storeTimeoutMs: 450,
  waitMs: 300,
  pollMs: 100,
  backoffMs: 10,
  maxBackoffMs: 200,
  maxAttempts: 10_000,
};
const failsOf = 20;

const inbox = createInbox({ stores, fallback: "ignore", onError: () => {}, ...times }).on(
  "buyer.status_changed",
  ({ data }, { tx }) => {
    const applied = apply(tx, data.buyer_id, Number(data.old_status));
    // Behind the write, which has to go with it.
    if (Math.random() * failsOf < 1) throw new TaskError("fails as it was told", { retryInMs: 5 });
    return applied;
  },
);

const outcomes = createOutcomes({ stores, url: receiverUrl, timeoutMs: 2_000, ...times });

const app = express().disable("x-powered-by");
app.use(
  webhookPath,
  webhookEndpoint({
    basicAuth: { username: credentials.username, password: credentials.password },
    hmac: { secrets: [credentials.secret] },
    https: { dangerouslyAllowHttp: true },
    handler: inbox,
    onReject: () => {},
  }),
);
// oxlint-disable-next-line oxc/no-async-endpoint-handlers -- Express 5 takes the promise
app.post(`${settlePath}/:key`, async (req, res) => {
  const { key } = req.params;
  const rollsBack = req.query.rollback === "1";
  await stores.transactions.run((tx) => {
    const report = () => outcomes.report(tx, { idempotencyKey: key, status: "SETTLED" });
    const end = () => {
      if (rollsBack) throw new Error("rolled back as it was told");
    };
    if (stores.transactions.mode === "sync") {
      void settle(tx, key);
      void report();
      return end();
    }
    return settle(tx, key).then(report).then(end);
  });
  await delay(Math.random() * 5);
  res.end();
});
app.use((_error, _req, res, _next) => {
  if (res.headersSent) res.destroy();
  else res.status(500).end();
});

inbox.start();
outcomes.start();
const server = app.listen(0, "127.0.0.1", () => process.send({ port: server.address().port }));
