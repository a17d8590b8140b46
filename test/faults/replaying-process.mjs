// A platform that gives answers again, in a process of its own: replaying-process.mjs <config as JSON>. It says on stdout where it
// listens. At the point of the config it dies, as by SIGKILL from outside.
import { createServer } from "node:http";
import process from "node:process";
import { guardErrors } from "@countersign/express";
import { idempotencyGuard, idempotencyKeyHeader } from "@countersign/idempotency-guard";
import { rawBody } from "@countersign/raw-body";
import { createSqliteAnswers, createSqliteStores, withImmediateTransaction } from "@countersign/store-sqlite";
import express from "express";
import Database from "libsql";

const { path, point, recovery, completesIn } = JSON.parse(process.argv[2]);
const database = new Database(path);
const { idempotency } = createSqliteStores({ database, pruneIntervalMs: 0 });
const answers = createSqliteAnswers({ database, pruneIntervalMs: 0 });
database.exec("CREATE TABLE IF NOT EXISTS payments (key TEXT NOT NULL)");

const reach = (name) => {
  if (name === point) process.kill(process.pid, "SIGKILL");
};

const dying = (target, name, before, after) =>
  new Proxy(target, {
    get(store, member) {
      const value = Reflect.get(store, member, store);
      if (typeof value !== "function") return value;
      if (member !== name) return value.bind(store);
      return (...args) => {
        reach(before);
        const result = value.apply(store, args);
        reach(after);
        return result;
      };
    },
  });

const pay = database.prepare("INSERT INTO payments (key) VALUES (?)");
const app = express();
app.post(
  "/refunds",
  rawBody(),
  idempotencyGuard({
    store: dying(idempotency, "complete", "before done", "after done"),
    ...idempotencyKeyHeader({ bareKeys: true }),
    replay: { answers: dying(answers, "keep", "before keep", "after keep") },
    recovery,
    leaseMs: 1_000,
    storeTimeoutMs: 900,
    waitMs: 0,
  }),
  (req, res) => {
    const { key, token, completeIn } = req.idempotency;
    if (completesIn) {
      withImmediateTransaction(database, (tx) => {
        void completeIn(tx);
        pay.run(key);
      });
    } else pay.run(key);
    reach("paid");
    res.status(201).json({ token });
  },
);
app.use(guardErrors());
const server = createServer(app).listen(0, "127.0.0.1", () => {
  process.stdout.write(`${server.address().port}\n`);
});
