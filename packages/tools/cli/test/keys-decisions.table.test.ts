import { expect, test } from "@jest/globals";
import { run, shellWords } from "./cli-bench.ts";
import {
  begin,
  complete,
  engineRows,
  fingerprint,
  hold,
  onEngines,
  type OperatorBench,
  runJson,
  runOn,
  statusOf,
} from "./operator-bench.ts";

onEngines(engineRows, "what an operator decided", (bench) => {
  const decided = async (key: string, outcome: string, ...args: readonly string[]): Promise<string> => {
    await hold(bench, key);
    const resolve = ["keys", "resolve", key, "--as", outcome, "--yes", "--by", "anna", ...args];
    return (await runOn(bench, resolve)).out;
  };
  const lastLine = (out: string): string => out.trimEnd().split("\n").at(-1) ?? "";

  test.each(["done", "released"])("show tells of a key that is %s who decided, when and why", async (as) => {
    const line = lastLine(await decided("payout:op-7", as, "--note", "TICKET-1"));
    const { code, out, err } = await runOn(bench, "keys show payout:op-7");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/^key +payout:op-7$/m);
    expect(out).toMatch(
      as === "done" ? /^state +done: declared as paid$/m : /^state +free: the next claim takes it$/m,
    );
    expect(out).toMatch(new RegExp(`^fingerprint +${fingerprint}$`, "m"));
    expect(out).toMatch(new RegExp(`^decided +${as}, by anna, \\S+ \\S+Z, just now$`, "m"));
    expect(out).toMatch(/^held for +the bank timed out$/m);
    expect(out).toMatch(/^note +TICKET-1$/m);
    expect(out).not.toContain("token-");
    const at =
      /^(\S+Z) payout:op-7 at fence (\d+): was held \(the bank timed out\), is (\w+), by anna, note "TICKET-1"$/;
    const [, time = "", fence, outcome] = at.exec(line) ?? [];
    expect(outcome).toBe(as);
    expect(await runJson(bench, "keys show payout:op-7")).toEqual([
      {
        key: "payout:op-7",
        state: as === "done" ? "done" : "free",
        fence: Number(fence),
        fingerprint,
        begunAt: expect.any(String),
        decision: {
          outcome: as,
          fence: Number(fence),
          at: time,
          by: "anna",
          note: "TICKET-1",
          reason: "the bank timed out",
        },
      },
    ]);
  });

  test("show tells of every other key, too, and of one that it does not know", async () => {
    await begin(bench, "running");
    await complete(bench, "paid");
    expect((await runOn(bench, "keys show running")).out).toMatch(/^state +running: lease ends in/m);
    const { out } = await runOn(bench, "keys show paid");
    expect(out).toMatch(/^state +done: processed$/m);
    expect(out).not.toMatch(/decided/);
    const { code, err } = await runOn(bench, "keys show other");
    expect(code).toBe(1);
    expect(err).toMatch(/^error: other: unknown in \S+ \((?:tables|prefix) \S+\): [^\n]*\n$/);
  });

  test("show still tells who released a key when its retry has paid", async () => {
    await decided("key", "released", "--note", "TICKET-1");
    await complete(bench, "key");
    const { out } = await runOn(bench, "keys show key");
    expect(out).toMatch(/^state +done: processed$/m);
    expect(out).toMatch(/^decided +released, about fence \d+, by anna, /m);
  });

  test("list does not show as processed what an operator has declared as paid", async () => {
    await decided("declared", "done");
    await complete(bench, "paid");
    await decided("retried", "released");
    await complete(bench, "retried");
    const { out } = await runOn(bench, "keys list --state done", { colours: true });
    const lineOf = (key: string) =>
      out
        .replaceAll("\u001B", "ESC")
        .split("\n")
        .find((line) => line.includes(`${key} `)) ?? "";
    expect(lineOf("declared")).toMatch(/ESC\[33m.*declared as paid; done by anna/);
    expect(lineOf("paid")).toMatch(/ESC\[32m.*processedESC/);
    expect(lineOf("retried")).toMatch(/ESC\[32m.*processed; released by anna, before this attempt/);
  });

  test.each(["done", "released"])("reopen takes a decision back: %s", async (outcome) => {
    await decided("payout:op-7", outcome);
    const reopen = "keys reopen payout:op-7 --by ben --note TICKET-2";
    const { code, out, err } = await runOn(bench, reopen);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(
      new RegExp(
        `^\\S+Z payout:op-7 at fence \\d+: was ${outcome} \\(${outcome} by anna\\), is held again, at fence \\d+, by ben, note "TICKET-2"\n$`,
      ),
    );
    expect(await statusOf(bench, "payout:op-7")).toBe("held");
    const held = (await runOn(bench, "keys held")).out;
    expect(held).toMatch(/^ {2}why +the bank timed out$/m);
    expect(held).toMatch(/^ {2}reopened +by ben, /m);
    expect((await runOn(bench, "keys show payout:op-7")).out).toMatch(/^reopened +by ben, /m);
    // By the command that is shown: its fence is that of the reopened key.
    const command = held.split("\n").find((line) => line.includes("--as done")) ?? "";
    const again = command.replace("'...'", "TICKET-3").trim().split(" ").slice(1);
    expect((await runOn(bench, [...again, "--yes"])).code).toBe(0);
    expect(await statusOf(bench, "payout:op-7")).toBe("done");
  });

  test("reopen takes --yes, as the other commands do: nothing is asked", async () => {
    await decided("key", "released");
    expect(await runOn(bench, "keys reopen key --yes")).toMatchObject({ code: 0, err: "" });
    expect(await statusOf(bench, "key")).toBe("held");
  });

  test("resolve says who has decided, when and why, and the command that takes it back", async () => {
    for (const [key, outcome, then] of [
      ["key", "released", ", and free for the next retry"],
      ["it's", "released", ", and free for the next retry"],
      ["paid", "done", ""],
    ] as const) {
      await decided(key, outcome, "--note", "TICKET-1");
      const again = await runOn(bench, ["keys", "resolve", key, "--as", "done", "--yes"]);
      expect({ code: again.code, out: again.out }).toEqual({ code: 1, out: "" });
      expect(again.err).toMatch(
        new RegExp(
          `^error: [^\n]*: already ${outcome} by anna at 20\\S+Z, note "[^\n"]+"${then}; to take it back: `,
        ),
      );
      const words = shellWords(again.err.trim().replace(/^.*countersign keys/, "keys"));
      expect(words.slice(3 - words.length)).toEqual(expect.arrayContaining(bench.flags.slice(2)));
      expect((await run(words)).code).toBe(0);
      expect(await statusOf(bench, key)).toBe("held");
    }
  });

  test("resolve calls a released key unknown once a retry has given it back", async () => {
    await decided("key", "released");
    await begin(bench, "key");
    await bench.idempotency.release("key", "token-key");
    expect((await runOn(bench, "keys resolve key --as done --yes")).err).toMatch(/unknown in/);
  });

  test("reopen says with --json what was and what is", async () => {
    await decided("key", "released");
    expect(await runJson(bench, "keys reopen key")).toEqual([
      {
        key: "key",
        was: expect.objectContaining({ state: "free" }),
        now: expect.objectContaining({
          state: "held",
          decision: expect.objectContaining({
            reopened: { at: expect.stringMatching(/^20\d\d-\S+Z$/), by: "the-login" },
          }),
        }),
      },
    ]);
  });

  test.each<[string, (on: OperatorBench) => unknown, RegExp]>([
    ["an unknown key", () => undefined, /unknown in \S+/],
    ["a run", (on) => begin(on, "key"), /an attempt has the key, nothing can be taken back/],
    ["a held key", (on) => hold(on, "key"), /held already, it waits for a decision/],
    ["what an attempt has done", (on) => complete(on, "key"), /an attempt has done it itself/],
    [
      "what a retry has paid since",
      async (on) => {
        await hold(on, "key");
        await runOn(on, ["keys", "resolve", "key", "--as", "released", "--yes"]);
        await complete(on, "key");
      },
      /an attempt has done it itself after the decision/,
    ],
    [
      "what a retry has given back since",
      async (on) => {
        await hold(on, "key");
        await runOn(on, ["keys", "resolve", "key", "--as", "released", "--yes"]);
        await begin(on, "key");
        await on.idempotency.release("key", "token-key");
      },
      /an attempt has had it after the decision/,
    ],
  ])("reopen leaves %s as it is, and says why", async (_name, prepare, why) => {
    await prepare(bench);
    const before = (await bench.idempotency.read("key"))?.state;
    const { code, out, err } = await runOn(bench, "keys reopen key");
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(/^error: key: [^\n]*\n$/);
    expect(err).toMatch(why);
    expect((await bench.idempotency.read("key"))?.state).toBe(before);
  });

  test("reopen takes back the decision of --fence, and no other", async () => {
    await decided("key", "done");
    const { fence = 0 } = (await bench.idempotency.read("key")) ?? {};
    const reopen = (given: number) => runOn(bench, ["keys", "reopen", "key", "--fence", String(given)]);
    expect((await reopen(fence - 1)).err).toMatch(
      new RegExp(`it is at fence ${fence} now, look at it again`),
    );
    expect(await bench.idempotency.read("key")).toMatchObject({ state: "done" });
    expect((await reopen(fence)).code).toBe(0);
    expect((await reopen(fence)).code).toBe(1);
  });

  test("names and notes steer no terminal, and stay in one line", async () => {
    await hold(bench, "key");
    const hostile = "a\n\u001B]0;title\u0007\u202Eb";
    const resolve = ["keys", "resolve", "key", "--as", "done", "--yes", "--by", hostile, "--note", hostile];
    const outs = [(await runOn(bench, resolve)).out];
    for (const args of [
      ["show", "key"],
      ["list", "--state", "done"],
      ["resolve", "key", "--as", "done", "--yes"],
    ])
      outs.push(Object.values(await runOn(bench, ["keys", ...args])).join("\n"));
    outs.push((await runOn(bench, ["keys", "reopen", "key", "--by", hostile, "--note", hostile])).out);
    outs.push((await runOn(bench, "keys held")).out);
    for (const out of outs) expect(out).not.toMatch(/[^\P{C}\n]/u);
    expect(lastLine(outs[0] ?? "")).toMatch(/is done, by a .*\{1b\}.*, note "a\\n.*b"$/);
    expect(outs[1]).toMatch(/^note +a \\u\{1b\}\]0;title\\u\{7\}\\u\{202e\}b$/m);
    expect((await bench.idempotency.read("key"))?.decision).toMatchObject({ by: hostile, note: hostile });
  });
});
