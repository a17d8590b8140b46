// A payer in a process of its own: payer-process.mjs <config as JSON> <armed points as JSON>. It says on stdout where it
// listens and which armed point it has reached, and goes on when stdin says so. SIGTERM drains it.
import { writeSync } from "node:fs";
import { createServer } from "node:http";
import process from "node:process";
import { createInterface } from "node:readline";
import { createPayer } from "./payer-app.mjs";

const config = JSON.parse(process.argv[2]);
const armed = new Set(JSON.parse(process.argv[3]));
const stopped = new Map();

// Synchronous, so that the parent knows before anything else happens.
const say = (line) => writeSync(1, `${line}\n`);

const points = {
  reach(point) {
    if (!armed.delete(point)) return Promise.resolve();
    return new Promise((resolve) => {
      stopped.set(point, resolve);
      say(`reached ${point}`);
    });
  },
  block(point) {
    if (!armed.delete(point)) return;
    say(`reached ${point}`);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000);
  },
};

/** Stops between a durable record and the answer. */
const stopWhenRecorded = (store) => {
  const complete = async (key, token) => {
    const ownership = await store.complete(key, token);
    await points.reach("recorded");
    return ownership;
  };
  return new Proxy(store, {
    get(target, name) {
      const member = Reflect.get(target, name, target);
      if (name === "complete") return complete;
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
};

const wrapStore = armed.has("recorded") ? stopWhenRecorded : undefined;
const payer = await createPayer(config, { points, wrapStore });
const server = createServer(payer.app);

process.once("SIGTERM", () => {
  server.close(async () => {
    await payer.close();
    process.exit(0);
  });
  say("draining");
});

createInterface({ input: process.stdin })
  .on("line", (line) => {
    const [order, point] = JSON.parse(line);
    if (order === "arm") armed.add(point);
    else stopped.get(point)?.();
  })
  .on("close", () => process.exit(1));

server.listen(0, "127.0.0.1", () => say(`listening ${server.address().port}`));
