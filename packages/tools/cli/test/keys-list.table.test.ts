import { beforeEach, expect, test } from "@jest/globals";
import { expectOneLine } from "./cli-bench.ts";
import {
  begin,
  complete,
  engineRows,
  fingerprint,
  hold,
  onEngines,
  runJson,
  runOn,
} from "./operator-bench.ts";

const hostileKeys: readonly (readonly [string, string])[] = [
  ["with a NUL", "a\0b"],
  ["that clears a terminal", "\u001B[2J"],
  ["in double quotes", '"quoted"'],
  ["that looks like a flag", "-x"],
  ["beyond ASCII", "é"],
  ["of a lone surrogate", "\ud800"],
  ["that turns the direction of text", "\u202E"],
];

onEngines(engineRows, "countersign keys list and held", (bench) => {
  test("list prints the keys in the state, and nothing of the others", async () => {
    await begin(bench, "running");
    await hold(bench, "held");
    await complete(bench, "done");
    const lines = async (state: string) => {
      const { code, out, err } = await runOn(bench, ["keys", "list", "--state", state]);
      expect({ code, err }).toEqual({ code: 0, err: "" });
      return out.split("\n").map((line) => line.split(/ {2,}/));
    };
    const head = ["key", "state", "fence", "fingerprint", "what is known"];
    const fence = expect.stringMatching(/^\d+$/);
    const short = fingerprint.slice(0, 12);
    const lease = expect.stringMatching(/^lease ends in \d+ s$/);
    expect(await lines("running")).toEqual([head, ["running", "running", fence, short, lease], [""]]);
    expect(await lines("held")).toEqual([head, ["held", "held", fence, short, "the bank timed out"], [""]]);
    expect(await lines("done")).toEqual([head, ["done", "done", fence, short, "processed"], [""]]);
  });

  test("--json prints one document a line, without the token", async () => {
    await hold(bench, "key", "reason");
    expect(await runJson(bench, "keys list --state held")).toEqual([
      {
        key: "key",
        state: "held",
        fence: expect.any(Number),
        fingerprint,
        reason: "reason",
        begunAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      },
    ]);
    expect(JSON.stringify(await runJson(bench, "keys held"))).not.toContain("token");
  });

  /** The keys of all pages; people are told the same cursor as programs. */
  async function listedKeys(...args: readonly string[]): Promise<unknown[]> {
    const listed: unknown[] = [];
    let more: readonly string[] = [];
    do {
      const list = ["keys", "list", ...args, ...more];
      const { out } = await runOn(bench, list);
      const lines = (await runJson(bench, list)) as { cursor?: string; key?: string }[];
      const { cursor } = lines.at(-1) ?? {};
      if (cursor !== undefined) expect(out).toContain(`more may follow: --cursor ${cursor}\n`);
      more = cursor === undefined ? [] : ["--cursor", cursor];
      listed.push(...lines.flatMap(({ key }) => key ?? []));
    } while (more.length > 0);
    return listed;
  }

  test("--limit and --cursor give every key over the pages", async () => {
    const keys = Array.from({ length: 7 }, (_none, at) => `key-${at}`);
    for (const key of keys) await hold(bench, key);
    expect(new Set(await listedKeys("--state", "held", "--limit", "3"))).toEqual(new Set(keys));
  });

  test("without a state it lists the keys of all, also over pages", async () => {
    const none = await runOn(bench, "keys list");
    expect(none).toMatchObject({ code: 0, out: expect.stringMatching(/^no key is in \S+ \(/) });
    const keys = ["running-1", "running-2", "held-1", "held-2", "held-3", "done-1", "done-2"];
    const put = { running: begin, held: hold, done: complete };
    for (const key of keys) await put[key.split("-")[0] as keyof typeof put](bench, key);
    const { out } = await runOn(bench, "keys list");
    for (const key of keys) expect(out).toMatch(new RegExp(`^${key} +${key.split("-")[0]} `, "m"));
    for (const limit of ["1", "2", "3"])
      expect(new Set(await listedKeys("--limit", limit))).toEqual(new Set(keys));
  });

  test("held --quiet prints nothing when no key waits", async () => {
    await complete(bench, "done");
    expect(await runOn(bench, "keys held --quiet")).toEqual({ code: 0, out: "", err: "" });
    await hold(bench, "key");
    const { out } = await runOn(bench, "keys held");
    expect(out).toMatch(/^1 key waits for a decision, /m);
    expect(await runOn(bench, "keys held --quiet")).toEqual({ code: 1, out, err: "" });
    expect(await runOn(bench, "keys held --json")).toMatchObject({ code: 1, err: "" });
  });

  test("held prints held keys and abandoned runs, and no run that goes on", async () => {
    await begin(bench, "running");
    await begin(bench, "abandoned", { expired: true });
    await hold(bench, "held");
    await complete(bench, "done");
    const { code, out } = await runOn(bench, "keys held");
    expect(code).toBe(1);
    expect(out).toMatch(
      /^abandoned\n[\s\S]*?^ {2}why +lease expired \d+ \w+ ago: .*make sure that it is gone$/m,
    );
    expect(out).toMatch(/^held\n {2}begun +\S+ \S+Z, just now\n {2}why +the bank timed out$/m);
    expect(out).toMatch(/^2 keys wait for a decision/m);
    expect(out).not.toMatch(/^(?:running|done)$/m);
  });

  test("held prints everything, however many pages it takes", async () => {
    const keys = Array.from({ length: 1100 }, (_none, at) => `key-${at}`);
    for (let at = 0; at < keys.length; at += 100) {
      await Promise.all(keys.slice(at, at + 100).map((key) => hold(bench, key)));
    }
    const listed = (await runJson(bench, "keys held")).map((line) => (line as { key: unknown }).key);
    expect(listed).toHaveLength(keys.length);
    expect(new Set(listed)).toEqual(new Set(keys));
  });

  test("says where it has found nothing", async () => {
    const place = /in \S+ \((?:tables|prefix) \S+\)\n$/;
    const held = await runOn(bench, "keys held");
    expect(held).toMatchObject({ code: 0, out: expect.stringMatching(/^no key waits for a decision/) });
    expect(held.out).toMatch(place);
    const done = await runOn(bench, "keys list --state done");
    expect(done).toMatchObject({ code: 0, out: expect.stringMatching(/^no key is in state done/) });
    expect(done.out).toMatch(place);
    expect(await runJson(bench, "keys held")).toEqual([]);
  });

  test.each(hostileKeys)("prints a key %s so that resolve takes it", async (_name, key) => {
    await hold(bench, key);
    await hold(bench, "another");
    const { out } = await runOn(bench, "keys held");
    expect(out).toMatch(/^[ -~\n]*$/);
    const printed = out.split("\n").find((line) => line.startsWith('"'));
    if (printed === undefined) throw new Error("the key is not printed as JSON");
    const resolve = ["keys", "resolve", "--as", "done", "--yes", "--key-json", printed];
    expect(await runOn(bench, resolve)).toMatchObject({ code: 0, err: "" });
    expect(await bench.idempotency.read(key)).toMatchObject({ state: "done" });
    expect(await bench.idempotency.read("another")).toMatchObject({ state: "held" });
  });

  test("shows a reason in one line, and without what steers a terminal", async () => {
    await hold(bench, "key", "first\nsecond\t\u001B[2Jthird");
    const { out } = await runOn(bench, "keys held");
    expect(out).toMatch(/^ {2}why +first second \\u\{1b\}\[2Jthird$/m);
    expect(out).not.toContain("\u001B");
  });

  test.each([
    ["a cursor that is none", ["--cursor", "&&&"], /--cursor: expected what the page before printed/],
    ["a cursor of no state", ["--cursor", "free:1"], /--cursor: expected what the page before printed/],
    ["a limit of 0", ["--limit", "0"], /--limit: expected an integer from 1 to 1000/],
    ["an unknown state", ["--state", "free"], /Allowed choices are running, held, done/],
  ])("%s ends with 2 and one line", async (_name, args, line) => {
    expectOneLine(await runOn(bench, ["keys", "list", "--state", "held", ...args]), 2, line);
  });
});

const dayMs = 86_400_000;

onEngines(engineRows, "countersign prune", (bench, engine) => {
  beforeEach(async () => {
    const old = bench.behind(91 * dayMs);
    for (const key of ["done-1", "done-2", "running"]) {
      await old.idempotency.claim(key, { token: key, fingerprint, leaseMs: 1000, recovery: "rerun" });
    }
    for (const key of ["done-1", "done-2"]) await old.idempotency.complete(key, key);
    for (const nonce of ["a", "b", "c"]) {
      await old.nonces.claim({ scope: "keyid", nonce, token: nonce, retainMs: 60_000 });
    }
    await bench.nonces.claim({ scope: "keyid", nonce: "fresh", token: "first", retainMs: 60_000 });
    await complete(bench, "done-now");
    await hold(bench, "held");
    await begin(bench, "running");
  });

  test("removes what has expired and says how much, once", async () => {
    const none = { keys: 0, nonces: 0, tasks: 0 };
    const [first] = await runJson(bench, "prune");
    expect(first).toEqual(engine.name === "Redis" ? none : { ...none, keys: 2, nonces: 3 });
    expect(await runJson(bench, "prune")).toEqual([none]);
    const { code, out } = await runOn(bench, "prune");
    expect(code).toBe(0);
    expect(out).toMatch(
      engine.name === "Redis"
        ? /removes by itself/
        : /^removed 0 done keys, 0 nonces and 0 done tasks from \S+ \(tables/,
    );
  });

  test("removes no run, no held key and nothing that is still remembered", async () => {
    await runOn(bench, "prune");
    const { idempotency, nonces } = bench;
    for (const key of ["running", "running"])
      expect(await idempotency.read(key)).toMatchObject({ state: "running" });
    expect(await idempotency.read("held")).toMatchObject({ state: "held" });
    expect(await idempotency.read("done-now")).toMatchObject({ state: "done" });
    const replay = { scope: "keyid", nonce: "fresh", token: "second", retainMs: 60_000 };
    expect(await nonces.claim(replay)).toBe("seen");
  });
});
