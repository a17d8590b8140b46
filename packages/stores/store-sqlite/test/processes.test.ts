import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { SqliteIdempotencyStore } from "../dist/idempotency-store.js";
import { afterEach, describe, expect } from "@jest/globals";
import { steadyTest as test } from "@countersign/test-support/runs/steadily.ts";
import { type Connection, connect, createStores, temporaryFile } from "./connections.ts";

const key = "payout-7.acc-1.acc-2";
const claim = { token: "retry", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;
const children: ChildProcess[] = [];

afterEach(async () => {
  const running = children.splice(0).filter((child) => child.exitCode === null && child.signalCode === null);
  await Promise.all(
    running.map((child) => {
      child.kill("SIGKILL");
      return once(child, "exit");
    }),
  );
});

function script(name: string): string {
  return fileURLToPath(new URL(`children/${name}`, import.meta.url));
}

/** Starts a payer and waits until it says that it is at `point`. */
async function payerAt(point: string, file: string, leaseMs: number) {
  const stdio = ["ignore", "pipe", "inherit"] as const;
  const child = spawn(process.execPath, [script("payer.mjs"), file, "first", String(leaseMs), point], {
    stdio: [...stdio],
  });
  children.push(child);
  const lines: AsyncIterator<Buffer> = child.stdout[Symbol.asyncIterator]();
  const nextLine = async () => String((await lines.next()).value).trim();
  expect(await nextLine()).toBe(point);
  return { child, nextLine };
}

async function kill(child: ChildProcess): Promise<void> {
  const exit = once(child, "exit");
  child.kill("SIGKILL");
  await exit;
}

function platform(file: string): { database: Connection; store: SqliteIdempotencyStore } {
  const database = connect(file);
  return { database, store: createStores(database).idempotency };
}

const payouts = (database: Connection) => database.prepare("SELECT token FROM payouts").all().length;

function untilExpired(store: SqliteIdempotencyStore): Promise<void> {
  const record = store.read(key);
  const remainingMs = record?.state === "run" ? record.remainingMs : 0;
  return new Promise((resolve) => {
    setTimeout(resolve, remainingMs + 1);
  });
}

describe("a platform process that is killed", () => {
  test.each(["claimed", "before commit"])(
    "when %s: nothing is paid, the key is in flight until the lease ends, then it runs again",
    async (point) => {
      const file = temporaryFile();
      const { child } = await payerAt(point, file, 1200);
      await kill(child);
      const { database, store } = platform(file);
      expect(payouts(database)).toBe(0);
      expect(store.claim(key, claim)).toMatchObject({ status: "in-flight", fingerprint: "f" });
      await untilExpired(store);
      expect(store.claim(key, claim)).toEqual({ status: "acquired", fence: expect.any(Number) });
    },
  );

  test("after commit: it is paid once, and the retry learns it", async () => {
    const file = temporaryFile();
    const { child } = await payerAt("after commit", file, 60_000);
    await kill(child);
    const { database, store } = platform(file);
    expect(payouts(database)).toBe(1);
    expect(store.claim(key, claim)).toEqual({ status: "done", fingerprint: "f" });
  });

  test("while it holds the write lock: the lock goes with it", async () => {
    const file = temporaryFile();
    const { database, store } = platform(file);
    const { child } = await payerAt("before commit", file, 60_000);
    database.exec("PRAGMA busy_timeout = 20");
    expect(() => store.claim("other.key.1", claim)).toThrow(/locked/);
    expect(store.claim(key, claim).status).toBe("in-flight");
    await kill(child);
    expect(store.claim("other.key.1", claim)).toEqual({ status: "acquired", fence: expect.any(Number) });
    expect(payouts(database)).toBe(0);
  });
});

test("a process that was stopped beyond its lease loses the key and rolls its payment back", async () => {
  const file = temporaryFile();
  const { child, nextLine } = await payerAt("paused", file, 300);
  const { database, store } = platform(file);
  await untilExpired(store);
  expect(store.claim(key, claim)).toEqual({ status: "acquired", fence: expect.any(Number) });
  child.kill("SIGCONT");
  expect(await nextLine()).toBe("lost");
  expect(payouts(database)).toBe(0);
  expect(store.complete(key, "retry")).toBe("ok");
  expect(store.claim(key, { ...claim, token: "late" }).status).toBe("done");
});

test("processes that start on one new file and claim the same keys win each exactly once", async () => {
  const file = temporaryFile();
  // Four commits each, on a disk that others write to as well.
  const count = 100;
  const racers = ["a", "b"].map((name) => fork(script("racer.mjs"), [file, name, String(count)]));
  children.push(...racers);
  await Promise.all(racers.map((racer) => once(racer, "message")));
  const results = racers.map((racer) => once(racer, "message"));
  for (const racer of racers) racer.send("go");
  const won = (await Promise.all(results)).map(([result]) => result as { keys: number[]; nonces: number[] });
  for (const winners of [won.flatMap(({ keys }) => keys), won.flatMap(({ nonces }) => nonces)]) {
    expect(winners).toHaveLength(count);
    expect(new Set(winners).size).toBe(count);
  }
});
