import { expect, test } from "@jest/globals";
import { expectOneLine, run, spawnCli } from "./cli-bench.ts";
import {
  begin,
  complete,
  engineRows,
  hold,
  onEngines,
  type OperatorBench,
  runJson,
  runOn,
  statusOf,
} from "./operator-bench.ts";

const dayMs = 86_400_000;

onEngines(engineRows, "countersign keys resolve", (bench) => {
  test.each([
    ["done", "done", /every retry is answered 409, already processed, and pays nothing/],
    ["released", "acquired", /the next retry PAYS/],
  ])("ends a held key as %s, and says what that means", async (outcome, next, meaning) => {
    await hold(bench, "key");
    const { code, out, err } = await runOn(bench, ["keys", "resolve", "key", "--as", outcome, "--yes"]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/^store +\S+ \((?:tables|prefix) \S+\)$/m);
    expect(out).toMatch(/^key +key$/m);
    expect(out).toMatch(/^state +held: the bank timed out$/m);
    expect(out).toMatch(/^fence +\d+$/m);
    expect(out).toMatch(/^fingerprint +0123456789abcdef/m);
    expect(out).toMatch(meaning);
    const change = String.raw`^\S+Z key at fence \d+: was held \(the bank timed out\), is ${outcome}, by the-login\n$`;
    expect(out.split("\n").slice(-2).join("\n")).toMatch(new RegExp(change));
    expect(await statusOf(bench, "key")).toBe(next);
  });

  test.each([
    ["done", "every delivery of it is acknowledged"],
    ["released", "The next delivery RUNS its handler"],
  ])("speaks of an event, not of a payment: %s", async (outcome, meaning) => {
    await hold(bench, "webhook-event:event-1");
    const resolve = ["keys", "resolve", "webhook-event:event-1", "--as", outcome, "--yes"];
    const { out } = await runOn(bench, resolve);
    expect(out).toContain(meaning);
    expect(out).not.toMatch(/pay|money/i);
  });

  test("resolves a run whose lease has expired, and warns of its owner", async () => {
    await begin(bench, "key", { expired: true });
    const { code, out } = await runOn(bench, "keys resolve key --as released --yes");
    expect(code).toBe(0);
    expect(out).toMatch(/make sure that it is gone, or both may act/);
    expect(await bench.idempotency.read("key")).toBeUndefined();
  });

  test("asks, and resolves what is confirmed", async () => {
    await hold(bench, "key");
    const questions: string[] = [];
    const ask = async (question: string) => {
      questions.push(question);
      expect(await bench.idempotency.read("key")).toMatchObject({ state: "held" });
      return question.startsWith("Note") ? "TICKET-1" : "done";
    };
    const resolve = "keys resolve key --as done";
    const { code, out } = await runOn(bench, resolve, { ask });
    const note = "Note for the record, such as a ticket (may be empty): ";
    expect({ code, questions }).toEqual({ code: 0, questions: [note, "Type done to confirm: "] });
    expect(out).toMatch(/is done, by the-login, note "TICKET-1"\n$/);
    expect(await bench.idempotency.read("key")).toMatchObject({
      state: "done",
      decision: { outcome: "done", by: "the-login", note: "TICKET-1", reason: "the bank timed out" },
    });
    expect(await statusOf(bench, "key")).toBe("done");
  });

  test("asks for no note that was given, and keeps none that is empty", async () => {
    for (const key of ["given", "empty"]) await hold(bench, key);
    const questions: string[] = [];
    const ask = (question: string) => {
      questions.push(question);
      return Promise.resolve(question.startsWith("Note") ? " " : "done");
    };
    const given = "keys resolve given --as done --by anna --note TICKET-1";
    expect((await runOn(bench, given, { ask })).code).toBe(0);
    expect(questions).toEqual(["Type done to confirm: "]);
    expect((await runOn(bench, "keys resolve empty --as done", { ask })).code).toBe(0);
    expect((await bench.idempotency.read("given"))?.decision).toMatchObject({
      by: "anna",
      note: "TICKET-1",
    });
    expect((await bench.idempotency.read("empty"))?.decision).not.toHaveProperty("note");
  });

  test("wants a name where the system knows none", async () => {
    await hold(bench, "key");
    const resolve = "keys resolve key --as done --yes";
    const nameless = { login: () => undefined };
    const { code, err } = await runOn(bench, resolve, nameless);
    expect({ code, err }).toEqual({
      code: 2,
      err: "error: --by: the system knows no name for you, give one\n",
    });
    expect(await bench.idempotency.read("key")).toMatchObject({ state: "held" });
    expect((await runOn(bench, `${resolve} --by anna`, nameless)).code).toBe(0);
  });

  test.each([
    ["nothing", ""],
    ["yes", "yes"],
    ["the other outcome", "released"],
    ["the end of the input", undefined],
  ])("changes nothing when the answer is %s", async (_name, answer) => {
    await hold(bench, "key");
    const ended = await runOn(bench, "keys resolve key --as done", {
      ask: (question) => Promise.resolve(question.startsWith("Note") ? "TICKET-1" : answer),
    });
    expect(ended).toMatchObject({ code: 1, err: "error: not confirmed; nothing was changed\n" });
    expect(await bench.idempotency.read("key")).toMatchObject({ state: "held" });
  });

  test("refuses without a terminal and without --yes", async () => {
    await hold(bench, "key");
    const ended = await runOn(bench, "keys resolve key --as done");
    expectOneLine(ended, 2, /without a terminal: add --yes to resolve the key, with --note and --fence/);
    expect(await bench.idempotency.read("key")).toMatchObject({ state: "held" });
  });

  test("demands a note and the fence without a terminal, with --yes", async () => {
    await hold(bench, "key");
    const { fence = 0 } = (await bench.idempotency.read("key")) ?? {};
    const resolve = ["keys", "resolve", "key", "--as", "done", "--yes", ...bench.flags];
    const env = {};
    for (const [args, line] of [
      [["--fence", String(fence)], /^error: --note: say why, for the record; /],
      [["--note", "TICKET-1"], /^error: --fence: without a terminal, give the fence that keys held shows/],
    ] as const)
      expectOneLine(await spawnCli([...resolve, ...args], { env }), 2, line);
    expect(await bench.idempotency.read("key")).toMatchObject({ state: "held" });
    const decided = [...resolve, "--fence", String(fence), "--note", "TICKET-1"];
    expect(await spawnCli(decided, { env })).toMatchObject({ code: 0, err: "" });
  });

  test("asks nobody when there is nothing to decide", async () => {
    await complete(bench, "key");
    const ask = () => Promise.reject(new Error("was asked"));
    const ended = await runOn(bench, "keys resolve key --as done", { ask });
    expect(ended).toMatchObject({ code: 1, out: "", err: expect.stringMatching(/already done/) });
  });

  test.each<[string, (on: OperatorBench) => Promise<void> | undefined, RegExp]>([
    ["a run", (on) => begin(on, "key"), /key: still running: its lease ends in \d+ ms/],
    ["a done key", (on) => complete(on, "key"), /key: already done; there is nothing to decide/],
    [
      "an unknown key",
      () => undefined,
      /key: unknown in \S+ \((?:tables|prefix) \S+\): never seen there.*with its scope, such as payout:/,
    ],
  ])("%s ends with 1 and says why", async (_name, prepare, why) => {
    await prepare(bench);
    const before = await bench.idempotency.read("key");
    for (const outcome of ["done", "released"]) {
      expectOneLine(await runOn(bench, ["keys", "resolve", "key", "--as", outcome, "--yes"]), 1, why);
    }
    expect((await bench.idempotency.read("key"))?.state).toBe(before?.state);
  });

  test("leads to the key with its scope when that is left out", async () => {
    await hold(bench, "payout:op-1.from.to");
    for (const command of [["resolve", "--as", "done", "--yes"], ["reopen"], ["show"]]) {
      const ended = await runOn(bench, ["keys", ...command, "op-1.from.to"]);
      expectOneLine(ended, 1, /retention; did you mean payout:op-1\.from\.to\?\n$/);
    }
  });

  test.each<[string, (on: OperatorBench) => Promise<unknown>, RegExp]>([
    [
      "was released and taken anew",
      async (on) => {
        await runOn(on, ["keys", "resolve", "key", "--as", "released", "--yes"]);
        await begin(on, "key", { expired: true });
      },
      /has changed since it was shown: it is at fence \d+ now; nothing was resolved, look at it again/,
    ],
    [
      "was completed by its owner",
      async (on) => on.idempotency.complete("key", "token-key"),
      /already done; there is nothing to decide/,
    ],
  ])("resolves nothing when the key %s during the question", async (_name, change, why) => {
    await hold(bench, "key");
    const ask = async () => {
      await change(bench);
      return "released";
    };
    const { code, err } = await runOn(bench, "keys resolve key --as released", { ask });
    expect(code).toBe(1);
    expect(err).toMatch(why);
    expect(await bench.idempotency.read("key")).toBeDefined();
  });

  test("decides about the attempt of --fence, and about no other", async () => {
    await hold(bench, "key");
    const { fence = 0 } = (await bench.idempotency.read("key")) ?? {};
    const resolve = (given: number) =>
      runOn(bench, ["keys", "resolve", "key", "--as", "released", "--fence", String(given), "--yes"]);
    for (const other of [fence - 1, fence + 1]) {
      const { code, out, err } = await resolve(other);
      expect({ code, out }).toEqual({ code: 1, out: "" });
      expect(err).toMatch(
        new RegExp(`^error: key has changed [^\n]* at fence ${fence} now; nothing was resolved`),
      );
    }
    expect(await bench.idempotency.read("key")).toMatchObject({ state: "held", fence });
    const { code, out } = await resolve(fence);
    expect(code).toBe(0);
    expect(out).toMatch(new RegExp(`^fence +${fence}$`, "m"));
    expect(await bench.idempotency.read("key")).toBeUndefined();
  });

  test("--json prints the decision and the record as it was, and the question elsewhere", async () => {
    await hold(bench, "key");
    expect(await runJson(bench, "keys resolve key --as released --yes")).toEqual([
      {
        key: "key",
        outcome: "released",
        was: {
          state: "held",
          fence: expect.any(Number),
          fingerprint: expect.stringMatching(/^0123456789abcdef/),
          reason: "the bank timed out",
        },
        decision: {
          outcome: "released",
          fence: expect.any(Number),
          at: expect.stringMatching(/^20\d\d-\S+Z$/),
          by: "the-login",
          reason: "the bank timed out",
        },
      },
    ]);
  });

  test("remembers a done key for 90 days, or as long as --retention-days says", async () => {
    for (const key of ["usual", "longer"]) await hold(bench, key);
    const resolve = (key: string, ...args: readonly string[]) =>
      runOn(bench, ["keys", "resolve", key, "--as", "done", "--yes", ...args]);
    expect((await resolve("usual")).out).toMatch(/For 90 days/);
    expect((await resolve("longer", "--retention-days", "365")).out).toMatch(/For 365 days/);
    const ahead = bench.behind(-100 * dayMs).idempotency;
    expect(await ahead.read("usual")).toBeUndefined();
    expect(await ahead.read("longer")).toMatchObject({ state: "done" });
    expect(await bench.behind(-89 * dayMs).idempotency.read("usual")).toMatchObject({ state: "done" });
  });

  test("one of two operators who resolve at once decides", async () => {
    await hold(bench, "key");
    const outcomes = ["done", "released", "done", "released"];
    const ended = await Promise.all(
      outcomes.map((outcome) => runOn(bench, ["keys", "resolve", "key", "--as", outcome, "--yes"])),
    );
    expect(ended.filter(({ code }) => code === 0)).toHaveLength(1);
    expect(ended.filter(({ code }) => code === 1)).toHaveLength(3);
    const decided = outcomes[ended.findIndex(({ code }) => code === 0)];
    expect(await statusOf(bench, "key")).toBe(decided === "done" ? "done" : "acquired");
  });
});

const done = "--as done";
test.each<[string, readonly string[], string, RegExp]>([
  ["no key", [], done, /a key is missing/],
  ["two keys", ["key"], `${done} --key-json "key"`, /--key-json: give the key only once/],
  ["an empty key", [""], done, /the key: expected 1 to 512 characters/],
  ["a key of 513 characters", ["k".repeat(513)], done, /the key: expected 1 to 512/],
  ["no outcome", ["key"], "", /required option '--as <outcome>'/],
  ["an unknown outcome", ["key"], "--as paid", /Allowed choices are done, released/],
  ["a key that is no JSON", [], `${done} --key-json key`, /--key-json: expected a JSON string/],
  ["JSON that is no string", [], `${done} --key-json 7`, /--key-json: expected a JSON string/],
  ["a retention of no days", ["key"], `${done} --retention-days 0`, /--retention-days: expected/],
  ["a fence that is no number", ["key"], `${done} --fence first`, /--fence: expected an integer/],
  ["a fence beyond all", ["key"], `${done} --fence 9999999999999999`, /--fence: expected/],
  ["a name of 129 characters", ["key"], `${done} --by ${"b".repeat(129)}`, /--by: expected 1 to 128/],
  ["an empty name", ["key"], `${done} --by=`, /--by: expected 1 to 128/],
  ["dots in place of a note", ["key"], `${done} --note ...`, /--note: say why, in place of the dots/],
  ["a note of 513 characters", ["key"], `${done} --note ${"n".repeat(513)}`, /--note: expected/],
  ["two positional keys", ["key", "other"], done, /too many arguments/],
])("resolve with %s ends with 2 and one line", async (_name, keys, flags, line) => {
  const store = ["--yes", "--store-url", "sqlite:missing.db"];
  const args = ["keys", "resolve", ...keys, ...flags.split(" ").filter(Boolean), ...store];
  expectOneLine(await run(args), 2, line);
});
