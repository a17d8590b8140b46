import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { TableStore } from "@countersign/idempotency/store";
import { afterEach, expect } from "@jest/globals";
import { steadyTest as test } from "@countersign/test-support/runs/steadily.ts";
import { type Connection, connect, openStores, temporaryFile } from "./connections.ts";

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

/** Starts a payer and waits until it holds the write lock. */
async function startPayer(file: string): Promise<ChildProcess> {
  const stdio = ["ignore", "pipe", "inherit"] as const;
  const child = spawn(process.execPath, [script("payer.mjs"), file, "first"], {
    stdio: [...stdio],
  });
  children.push(child);
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  expect(String(line).trim()).toBe("before commit");
  return child;
}

function platform(file: string): { database: Connection; store: TableStore<"sync"> } {
  const database = connect(file);
  return { database, store: openStores(database).idempotency };
}

const payouts = (database: Connection) => database.prepare("SELECT token FROM payouts").all().length;

test("a process that is killed while it holds the write lock lets go of the lock", async () => {
  const file = temporaryFile();
  const { database, store } = platform(file);
  const child = await startPayer(file);
  database.exec("PRAGMA busy_timeout = 20");
  expect(() => store.claim("other.key.1", claim)).toThrow(/locked/);
  expect(store.read(key)).toBeUndefined();
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(store.claim("other.key.1", claim)).toEqual({ status: "acquired", fence: expect.any(Number) });
  expect(payouts(database)).toBe(0);
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
