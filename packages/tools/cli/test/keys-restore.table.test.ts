import { beforeEach, describe, expect, test } from "@jest/globals";
import express, { type ErrorRequestHandler } from "express";
import { idempotencyGuard } from "../../../checks/idempotency-guard/dist/index.js";
import { rawBody } from "../../../checks/raw-body/dist/index.js";
import { memoryIdempotencyStore, type IdempotencyStore } from "@countersign/idempotency";
import { expectOneLine, expectRun, moduleIn, run, spawnCli, temporaryFolder } from "./cli-bench.ts";
import {
  begin,
  complete,
  engineRows,
  hold,
  methodsOf,
  onEngines,
  runJson,
  runOn,
  statusOf,
} from "./operator-bench.ts";

const folder = temporaryFolder();
const dayMs = 86_400_000;
const why = ["--yes", "--by", "anna", "--note", "TICKET-1"];
const restore = ["keys", "restore", ...why];

onEngines(engineRows, "countersign keys restore", (bench, engine) => {
  test("enters unknown keys as done, by whom and why, so that no retry pays", async () => {
    const { code, out, err } = await runOn(bench, [...restore, "payout:1", "payout:2", "payout:1"]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const line =
      /^\S+Z payout:1 at fence \d+: was unknown \(restored: paid before the restore\), is done, by anna, note "TICKET-1"$/gm;
    expect(out.match(line)).toHaveLength(1);
    expect(out).toMatch(/^2 restored, 0 done already, 0 not done: \S+ \(/m);
    expect(await statusOf(bench, "payout:2")).toBe("done");
    expect((await runOn(bench, "keys show payout:1")).out).toMatch(
      /^state +done: declared as paid\n[\s\S]*^decided +done, by anna, [^\n]*\nheld for +restored: paid before the restore\nnote +TICKET-1$/m,
    );
  });

  test("leaves what the store knows as it is, and ends with 1 unless all is done", async () => {
    await complete(bench, "payout:done");
    const done = await bench.idempotency.read("payout:done");
    const onlyDone = await runOn(bench, [...restore, "payout:done", "payout:new"]);
    expect(onlyDone.code).toBe(0);
    expect(onlyDone.out).toMatch(/^payout:done: known, left as it is: done: processed$/m);
    await begin(bench, "payout:run");
    await hold(bench, "payout:held");
    const keys = ["payout:run", "payout:held", "payout:done", "payout:new", "payout:more"];
    const { code, out } = await runOn(bench, [...restore, ...keys]);
    expect(code).toBe(1);
    expect(out).toMatch(/^payout:run: known, left as it is: running: lease ends in /m);
    expect(out).toMatch(/^payout:held: known, left as it is: held: the bank timed out$/m);
    expect(out).toMatch(/^payout:new: known, left as it is: done: declared as paid; done by anna$/m);
    expect(out).toMatch(/^1 restored, 2 done already, 2 not done: /m);
    expect(await bench.idempotency.read("payout:done")).toEqual(done);
    expect(await bench.idempotency.read("payout:run")).toMatchObject({
      state: "running",
      token: "token-payout:run",
    });
    expect(await bench.idempotency.read("payout:held")).toMatchObject({ token: "token-payout:held" });
  });

  test("prints JSON, and remembers a key for --retention-days", async () => {
    await hold(bench, "payout:held");
    const [first, second] = await runJson(bench, [
      ...restore,
      "payout:1",
      "payout:held",
      "--retention-days",
      "365",
    ]);
    expect(first).toMatchObject({
      key: "payout:1",
      restored: true,
      state: "done",
      decision: {
        outcome: "done",
        by: "anna",
        note: "TICKET-1",
        reason: "restored: paid before the restore",
      },
    });
    expect(second).toMatchObject({ key: "payout:held", restored: false, state: "held" });
    expect(JSON.stringify([first, second])).not.toContain("token");
    expect(await bench.behind(-100 * dayMs).idempotency.read("payout:1")).toMatchObject({ state: "done" });
  });

  test("can be taken back; then it leaves the key to whoever did that", async () => {
    await runOn(bench, [...restore, "payout:1"]);
    expect((await runOn(bench, "keys reopen payout:1")).code).toBe(0);
    expect((await runOn(bench, [...restore, "payout:1"])).code).toBe(1);
    expect(await bench.idempotency.read("payout:1")).toMatchObject({ state: "held" });
    const release = "keys resolve payout:1 --as released --yes";
    expect((await runOn(bench, release, { ask: () => Promise.resolve("") })).code).toBe(0);
    const { code, out } = await runOn(bench, [...restore, "payout:1"]);
    expect(code).toBe(1);
    expect(out).toMatch(/^payout:1: known, left as it is: free: [^\n]*; released by the-login$/m);
    expect(await statusOf(bench, "payout:1")).toBe("acquired");
  });

  test("enters a key that was released before the backup and paid after it", async () => {
    await hold(bench, "payout:1");
    const release = "keys resolve payout:1 --as released --yes";
    expect((await runOn(bench, release, { ask: () => Promise.resolve("") })).code).toBe(0);
    expect((await runOn(bench, [...restore, "payout:1"])).code).toBe(0);
    expect(await statusOf(bench, "payout:1")).toBe("done");
  });

  test("two at once restore each key once", async () => {
    const keys = Array.from({ length: 10 }, (_, index) => `payout:${index}`);
    const ended = await Promise.all([
      runOn(bench, [...restore, ...keys]),
      runOn(bench, [...restore, ...keys]),
    ]);
    for (const key of keys) expect(await statusOf(bench, key)).toBe("done");
    const lines = ended.flatMap(({ out }) => out.match(/was unknown/g) ?? []);
    expect(lines).toHaveLength(keys.length);
  });

  test("takes keys of standard input, odd ones as the list prints them", async () => {
    const odd = "payout:it's \u001B é";
    await complete(bench, odd);
    const { out: listed } = await runOn(bench, "keys list --state done");
    const printed = /^"(?:[^"\\]|\\.)*"/m.exec(listed)?.[0] ?? "";
    const other = await engine.open();
    try {
      const input = `payout:1\r\n\n${printed}\n${JSON.stringify("payout:ü")}\n`;
      const ended = await spawnCli(["keys", "restore", "-", ...why, ...other.flags], { env: {}, input });
      expect(ended).toMatchObject({ code: 0, err: "" });
      for (const key of ["payout:1", odd, "payout:ü"])
        expect(await other.idempotency.read(key)).toMatchObject({ state: "done" });
    } finally {
      await other.close();
    }
  });
});

describe("a store of one's own", () => {
  const shared = globalThis as { restoredOfTest?: IdempotencyStore };
  let store: IdempotencyStore;
  beforeEach(() => {
    store = { ...methodsOf(memoryIdempotencyStore()), close: () => {} };
    shared.restoredOfTest = store;
  });
  const text = "export const createStore = () => globalThis.restoredOfTest;";
  const restoreOn = (...args: readonly string[]) =>
    run([...restore, "--store-module", moduleIn(folder, text, "module.mjs"), ...args]);

  // Whatever the process has done when it dies, nobody is let to pay.
  test.each(["claim", "hold", "resolve"] as const)("goes on after a crash behind its %s", async (step) => {
    const lost = (): never => {
      throw new Error("the line was lost");
    };
    const crash: IdempotencyStore = {
      ...store,
      ...(step === "claim" && { hold: lost }),
      ...(step === "hold" && { resolve: lost }),
      ...(step === "resolve" && {
        resolve: async (key, outcome, decision) => {
          await store.resolve(key, outcome, decision);
          return lost();
        },
      }),
    };
    shared.restoredOfTest = crash;
    expectRun(await restoreOn("payout:1"), 1, { err: /the line was lost/ });
    const attempt = { token: "retry", fingerprint: "f", leaseMs: 1000, recovery: "hold" } as const;
    expect((await store.claim("payout:1", attempt)).status).not.toBe("acquired");
    shared.restoredOfTest = store;
    expect(await restoreOn("payout:1")).toMatchObject({ code: 0 });
    expect(await store.read("payout:1")).toMatchObject({ state: "done", decision: { by: "anna" } });
  });

  test("does nothing about a key that an attempt takes meanwhile", async () => {
    const attempt = { token: "other", fingerprint: "f", leaseMs: 60_000, recovery: "hold" } as const;
    shared.restoredOfTest = {
      ...store,
      claim: async (key, claim) => {
        await store.claim(key, attempt);
        return store.claim(key, claim);
      },
    };
    expectRun(await restoreOn("payout:1"), 1, { out: /left as it is: running/ });
    expect(await store.read("payout:1")).toMatchObject({ state: "running", token: "other" });
  });

  test("asks at a terminal for the note and once more", async () => {
    const questions: string[] = [];
    const answers = (word: string) => (question: string) => {
      questions.push(question);
      return Promise.resolve(question.startsWith("Note") ? "TICKET-2" : word);
    };
    const args = ["keys", "restore", "payout:1", "--store-module", moduleIn(folder, text, "module.mjs")];
    expect(await run(args, { ask: answers("yes") })).toMatchObject({
      code: 1,
      err: "error: not confirmed; nothing was changed\n",
    });
    expect(await store.read("payout:1")).toBeUndefined();
    expectRun(await run(args, { ask: answers("restore") }), 0, {
      out: /^key +payout:1\n[\s\S]*note "TICKET-2"\n1 restored/m,
    });
    expect(questions).toHaveLength(4);
  });

  test("answers a retry 409 idempotency-key-reused: it does not pay", async () => {
    await restoreOn("payout:1");
    let paid = 0;
    const app = express();
    app.post("/", rawBody(), idempotencyGuard({ store, scope: "payout", key: () => "1" }), (_req, res) => {
      paid += 1;
      res.sendStatus(200);
    });
    const showCode: ErrorRequestHandler = (error: { status: number; code: string }, _req, res, _next) =>
      res.status(error.status).send(error.code);
    app.use(showCode);
    const server = app.listen(0, "127.0.0.1");
    try {
      await new Promise((resolve) => server.once("listening", resolve));
      const { port } = server.address() as { port: number };
      const answer = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body: "{}" });
      const told = { status: answer.status, code: await answer.text(), paid };
      expect(told).toEqual({ status: 409, code: "idempotency-key-reused", paid: 0 });
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });
});

test.each<[string, readonly string[], RegExp]>([
  ["no key", [], /a key is missing/],
  ["no note", ["payout:1", "--yes"], /--note: say why/],
  [
    "nobody who could be asked",
    ["payout:1", "--note", "n"],
    /nobody can be asked without a terminal: add --yes/,
  ],
  [
    "a key without its scope",
    [...why, "payout:1", "op-7.from.to"],
    /^error: op-7\.from\.to: has no scope, such as payout:/,
  ],
  ["a key of 513 characters", [...why, `payout:${"k".repeat(506)}`], /the key: expected 1 to 512/],
  ["JSON that is no string", [...why, "--key-json", "7"], /--key-json: expected a JSON string/],
])("restore with %s ends with 2 and one line", async (_name, args, line) => {
  expectOneLine(await run(["keys", "restore", ...args, "--store-url", "sqlite:missing.db"]), 2, line);
});

test("takes keys without a scope where the guard has none", async () => {
  const { code, err } = await run([...restore, "key", "--unscoped", "--store-url", "sqlite:missing.db"]);
  expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(/does not exist/) });
});

test.each([
  ["an odd key that is not in double quotes", "payout:é"],
  ["a space at the end", "payout:1 "],
  ["a document of the list", '{"key":"payout:1","state":"done"}'],
  ["half a string", '"payout:1'],
])("refuses %s on standard input, before anything is entered", async (_name, line) => {
  const args = ["keys", "restore", "-", ...why, "--store-url", "sqlite:missing.db"];
  const ended = await spawnCli(args, { env: {}, input: `payout:0\n${line}\n` });
  expectOneLine(ended, 2, /^error: line 2 of standard input: expected /);
});
