// I15 under SIGKILL: what is answered for a key that is done, and how often it was paid, whatever had been kept by then.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSqliteStores } from "@countersign/store-sqlite";
import { afterEach, describe, expect, test } from "@jest/globals";
import Database from "libsql";
import { sleep } from "../support/faulty-store.ts";

interface Config {
  readonly point?: string;
  readonly recovery: "hold" | "rerun";
  readonly completesIn: boolean;
}

interface Answer {
  readonly status: number;
  readonly replayed: boolean;
  readonly token: unknown;
  readonly code: unknown;
}

const children: ChildProcess[] = [];
const folders: string[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
  }
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

const script = new URL("replaying-process.mjs", import.meta.url).pathname;

async function start(
  path: string,
  config: Config,
): Promise<{ child: ChildProcess; refund(): Promise<Answer> }> {
  const child = spawn(process.execPath, [script, JSON.stringify({ path, ...config })], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, COUNTERSIGN_STDERR: "off" },
  });
  children.push(child);
  const [line] = (await once(child.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
  const url = `http://127.0.0.1:${Number(String(line))}/refunds`;
  return {
    child,
    async refund() {
      const answer = await fetch(url, { method: "POST", body: "{}", headers: { "Idempotency-Key": "k" } });
      const { token, code } = (await answer.json()) as { token?: unknown; code?: unknown };
      return { status: answer.status, replayed: answer.headers.has("idempotency-replayed"), token, code };
    },
  };
}

/** A refund in a process that dies at the point, and another process behind it. */
async function killedAt(point: string, config: Config) {
  const folder = mkdtempSync(join(tmpdir(), "replayed-"));
  folders.push(folder);
  const path = join(folder, "platform.db");
  // In turn: both would create the tables.
  const first = await start(path, { ...config, point });
  const standby = start(path, config);
  const ended = once(first.child, "exit");
  await expect(first.refund()).rejects.toThrow("fetch failed");
  expect(await ended).toEqual([null, "SIGKILL"]);
  const second = await standby;
  const query = (sql: string): readonly unknown[] => {
    const database = new Database(path);
    try {
      return database.prepare(sql).all();
    } finally {
      database.close();
    }
  };
  return {
    path,
    refund: second.refund,
    payments: () => query("SELECT key FROM payments").length,
    kept: () =>
      query("SELECT token FROM countersign_answers").map((row) => (row as { readonly token: string }).token),
  };
}

/** Retries until the answer is no "come again". */
async function decided(refund: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await refund();
    if (answer.code !== "in-flight") return answer;
    await sleep(100);
  }
}

describe("a process that dies", () => {
  const recovery = "rerun";

  test.each(["paid", "before keep"])(
    "with its transaction committed, at %s: done without an answer, 1 payment",
    async (point) => {
      const { refund, payments, kept } = await killedAt(point, { recovery, completesIn: true });
      expect(kept()).toEqual([]);
      for (let count = 0; count < 3; count += 1) {
        expect(await refund()).toMatchObject({ status: 409, code: "already-processed", replayed: false });
      }
      expect(payments()).toBe(1);
    },
  );

  test("with its transaction committed and its answer kept: that answer, 1 payment", async () => {
    const { refund, payments, kept } = await killedAt("after keep", { recovery, completesIn: true });
    const [token] = kept();
    for (let count = 0; count < 3; count += 1) {
      expect(await refund()).toMatchObject({ status: 201, replayed: true, token });
    }
    expect(payments()).toBe(1);
  });

  test("behind the record, before the answer left: that answer, 1 payment", async () => {
    const { refund, payments, kept } = await killedAt("after done", { recovery, completesIn: false });
    const [token] = kept();
    expect(await refund()).toMatchObject({ status: 201, replayed: true, token });
    expect(payments()).toBe(1);
  });
});

describe("a process that dies with an answer kept and no record", () => {
  test("under rerun: the answer of the attempt that ends the key", async () => {
    const config = { recovery: "rerun", completesIn: false } as const;
    const { refund, payments, kept } = await killedAt("after keep", config);
    const [orphan] = kept();
    expect(orphan).toBeDefined();
    const second = await decided(refund);
    expect(second).toMatchObject({ status: 201, replayed: false });
    expect(second.token).not.toBe(orphan);
    expect(await refund()).toMatchObject({ status: 201, replayed: true, token: second.token });
    // The effect was in no transaction with the record: what `rerun` asks of a handler.
    expect(payments()).toBe(2);
  });

  test.each(["done", "released"] as const)(
    "under hold: nobody's answer until an operator has said %s",
    async (outcome) => {
      const { path, refund, payments, kept } = await killedAt("after keep", {
        recovery: "hold",
        completesIn: false,
      });
      const [orphan] = kept();
      expect(await decided(refund)).toMatchObject({ status: 503, code: "held", replayed: false });
      expect(payments()).toBe(1);
      const database = new Database(path);
      const { idempotency } = createSqliteStores({ database, pruneIntervalMs: 0 });
      const { fence = 0 } = idempotency.read("k") ?? {};
      expect(idempotency.resolve("k", outcome, { fence })).toBe("ok");
      idempotency.close();
      database.close();
      const answer = await refund();
      if (outcome === "done") {
        expect(answer).toMatchObject({ status: 409, code: "already-processed" });
        expect(payments()).toBe(1);
      } else {
        expect(answer).toMatchObject({ status: 201, replayed: false });
        expect(answer.token).not.toBe(orphan);
        expect(await refund()).toMatchObject({ status: 201, replayed: true, token: answer.token });
      }
    },
  );
});
