// A platform cut down to one payout route, on the stores of any engine, with named points at which a test can stop it. Plain
// JavaScript, because it runs in processes of its own too.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { guardErrors } from "@countersign/express";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import { jsonBody, rawBody } from "@countersign/raw-body";
import express from "express";
import { openEngine } from "./payer-engines.mjs";
import { payoutInTransaction } from "./payer-transactions.mjs";

/** How long the guards wait; short, so that the tests are. */
export const usualTimes = { leaseMs: 1_200, waitMs: 100, pollMs: 20, storeTimeoutMs: 1_000 };

/** Opens the stores and builds the app. `points` stop the handler, `wrapStore` stands between the guard and its store. */
export async function createPayer(config, { points, wrapStore = (store) => store, now } = {}) {
  const engine = await openEngine(config.engine, now);
  // Alarms are what the faults are expected to raise; without a subscriber they would be warnings of the process.
  const hearAlarms = () => {};
  subscribe("countersign:notice", hearAlarms);
  const store = wrapStore(engine.stores.idempotency);
  const answers = config.givesAgain === true ? engine.openAnswers() : undefined;
  const app = express();
  if (config.answerAfterMs !== undefined) app.use(answerAfter(config.answerAfterMs));
  app.post("/payouts", payoutRoute(config, { engine, store, answers, points }));
  app.post("/nonces/:nonce", (req, res) => useNonce(engine.stores.nonces, req, res));
  app.get("/clock", (_req, res) => res.json({ nowMs: Date.now() }));
  app.use(guardErrors());
  const close = () => {
    unsubscribe("countersign:notice", hearAlarms);
    answers?.close();
    return engine.close();
  };
  return { app, engine, answers, close };
}

function payoutRoute(config, { engine, store, answers, points }) {
  const recovery = config.recovery ?? "rerun";
  const times = { ...usualTimes, ...config.times };
  const { publicKey } = config;
  if (publicKey !== undefined) return payoutInTransaction({ publicKey, recovery, times, engine, points });
  const guard = idempotencyGuard({
    ...times,
    // A test's tables are its own, and it reads the keys as they were sent.
    store: Object.assign(store, { isPrivate: true }),
    recovery,
    retryAfterSeconds: 1,
    key: ({ body }) => Object(body).idempotency_key,
    replay: answers && { answers: keptAtPoints(answers, points), callers: "shared" },
  });
  return [rawBody(), jsonBody(), guard, (req, res) => handlePayout({ engine, points }, req, res)];
}

const keptAtPoints = (answers, points) => ({
  find: (token) => answers.find(token),
  prune: () => answers.prune(),
  close: () => answers.close(),
  async keep(token, answer) {
    await points.reach("before keep");
    await answers.keep(token, answer);
    await points.reach("kept");
  },
});

/** What apps put before their routes against handlers that hang: it answers, and the handler goes on. */
function answerAfter(ms) {
  return (_req, res, next) => {
    const timer = setTimeout(() => void res.status(503).json({ error: "timed out" }), ms);
    res.on("close", () => clearTimeout(timer));
    next();
  };
}

async function handlePayout({ engine, points }, req, res) {
  const { idempotency: attempt } = req;
  await points.reach("handler");
  const fault = req.get("fault");
  if (fault === "refuse") return res.status(422).json({ error: "refused" });
  if (fault === "fail") throw new Error("the handler fails as it was told");
  await engine.pay({ attempt, amount: req.body.amount, points });
  await points.reach("after commit");
  return res.json({ paid: attempt.key, token: attempt.token });
}

async function useNonce(nonces, req, res) {
  const claim = { scope: "service-1", nonce: req.params.nonce, token: req.get("token"), retainMs: 60_000 };
  res.json({ use: await nonces.claim(claim) });
}
