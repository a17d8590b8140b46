// One process of the platform: told where its store is by SOAK_PAYER, answers with its port, ends with its parent.
import { appendFileSync } from "node:fs";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { payoutEndpoint, payoutOf } from "countersign/payout";
import express from "express";
import { engines, longestHandlingMs, payoutPath } from "./engines.mjs";

// The kills refuse a great deal; the report counts it.
process.env.COUNTERSIGN_STDERR ??= "off";

const { engine, mode, location, keyid, publicKeyPem, log } = JSON.parse(process.env.SOAK_PAYER);
process.once("disconnect", () => process.exit(0));

const { idempotency, nonces, pay, faultOf, transactions } = await engines[engine].open(location);

// One write() of a short line: a process that is killed has written it, or has not.
const note = (...words) => appendFileSync(log, `${words.join(" ")}\n`);

const app = express().disable("x-powered-by");
// As short as the guard takes them: a fault is over soon.
const times = { storeTimeoutMs: 900, waitMs: 300, recovery: "rerun" };
const checks = { addresses: { allow: ["127.0.0.1"] } };
const keys = { [keyid]: publicKeyPem };

function payInTransaction() {
  const endpoint = payoutEndpoint({
    ...checks,
    signature: { keys },
    stores: transactions.stores,
    mayWriteNothing: transactions.mayWriteNothing,
    // Most sleeps outlast it.
    idempotency: { ...times, idleTimeoutMs: 1_000 },
    pay(payout, context) {
      // Not a run: what is rolled back may run again, also by a conflict or a replay.
      note("try", context.request.signature.nonce, payout.idempotencyKey);
      return transactions.pay(payout, context);
    },
  });
  app.post(payoutPath, endpoint);
}

function payUnderLease() {
  const guard = payoutEndpoint({
    ...checks,
    signature: {
      keys,
      nonces: {
        async claim(claim) {
          const answer = await nonces.claim(claim);
          if (answer === "fresh") note("fresh", claim.nonce, claim.token);
          return answer;
        },
      },
      storeTimeoutMs: 900,
    },
    idempotency: { ...times, store: idempotency, leaseMs: 1_000, pollMs: 50 },
  });
  // oxlint-disable-next-line oxc/no-async-endpoint-handlers -- Express 5 takes the promise
  app.post(payoutPath, guard, async (req, res) => {
    const payout = payoutOf(req);
    note("run", req.signature.nonce, payout.idempotencyKey, req.idempotency.fence);
    await delay(Math.random() * longestHandlingMs);
    await pay(payout);
    await delay(Math.random() * longestHandlingMs);
    res.json({ status: "accepted" });
  });
}

if (mode === "transaction") payInTransaction();
else payUnderLease();
// A lease's handler meets the database's faults itself: a session that was ended, a conflict.
const passing = new Set(["conflict", "locked", "unavailable"]);
// The stack of every 503 of the soak would bury its report.
app.use((error, _req, res, _next) => {
  const isPassing = passing.has(faultOf(error));
  const status = error.status ?? (isPassing ? 503 : 500);
  if (status === 500) note("fault", JSON.stringify(String(error)));
  if (res.headersSent) res.destroy();
  else res.status(status).end();
});

const server = app.listen(0, "127.0.0.1", () => process.send({ port: server.address().port }));
