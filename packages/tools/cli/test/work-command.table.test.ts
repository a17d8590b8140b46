import { beforeEach, expect, test } from "@jest/globals";
import { expectOneLine, expectRun, run } from "./cli-bench.ts";
import {
  engineRows,
  engines,
  onEngines,
  type OperatorBench,
  runJson,
  runOn,
  type Tasks,
} from "./operator-bench.ts";

const hourMs = 3_600_000;

const withTasks = engineRows.filter(({ keepsTasks }) => keepsTasks);
const withoutTasks = engineRows.filter(({ keepsTasks }) => !keepsTasks);

onEngines(withTasks, "countersign inbox", (bench) => {
  let tasks: Tasks;
  beforeEach(() => {
    tasks = tasksOf(bench);
  });

  const runInbox = (command: string, io: Parameters<typeof runOn>[2] = {}) =>
    runOn(bench, `inbox ${command}`, io);
  const stateOf = async (id: string) => (await tasks.read("inbox", id))?.state;

  test("counts what is open, runs, is dead and done, and ends with 1 for what is dead", async () => {
    const nothing = await runInbox("");
    expect(nothing).toMatchObject({ code: 0, out: expect.stringMatching(/^no inbox has tasks in /) });
    await tasks.add("inbox", { id: "event-1", body: "{}" }, { id: "event-2", body: "{}" });
    await tasks.add("other", { id: "task", body: "{}" });
    const [running] = await claim(tasks, 1);
    const counted = await runInbox("status");
    expect(counted.code).toBe(0);
    expect(counted.out).toMatch(
      /^queue +open +running +dead +done +oldest +state\ninbox +2 +1 +0 +0 +\d+ \w+\n$/,
    );
    await fail(tasks, running);
    const { code, out } = await runInbox("");
    expect(code).toBe(1);
    expect(out).toMatch(/^inbox +1 +0 +1 +0 /m);
    expect(out).toMatch(/^1 dead task of inbox:\n {2}countersign inbox list --state dead /m);
    const work = await runOn(bench, "work --json");
    expect({ code: work.code, queues: work.out.match(/(?<="queue":")\w+/g) }).toEqual({
      code: 1,
      queues: ["inbox", "other"],
    });
  });

  test("lists and shows tasks with the reasons of their attempts, and steers no terminal", async () => {
    const hostile = { id: "it's é\u0000", entity: "buyer:1", body: '{"name":"\u001B[2J"}' };
    await tasks.add("inbox", hostile, { id: "event-2", entity: "buyer:1", body: "{}", delayMs: hourMs });
    const [owned] = await claim(tasks, 1);
    await fail(tasks, owned, "the bank\n\u001B[2J says no");
    const { out } = await runInbox("list");
    const shown = String.raw`"it\u0027s \u00e9\u0000"`;
    expect(out).toContain(
      `${shown}  dead   1         just now  given up just now; the bank \\u{1b}[2J says no\n`,
    );
    expect(out).toMatch(/^event-2 +open +0 +just now +due in \d+ min$/m);
    const { code, out: one } = await runOn(bench, ["inbox", "show", "--id-json", shown]);
    expect(code).toBe(0);
    expect(one).toMatch(/^entity +buyer:1$/m);
    expect(one).toMatch(/^attempt 1 +\S+ \S+Z, just now: the bank \\u\{1b\}\[2J says no$/m);
    expect(one).toMatch(/^body\n {2}\{"name":"\\u\{1b\}\[2J"\}$/m);
    expect(await runJson(bench, "inbox list --state dead")).toEqual([
      expect.objectContaining({ ...hostile, state: "dead", attempts: 1, dueAt: null }),
    ]);
    const none = { code: 0, out: expect.stringMatching(/^no done task is in inbox in /) };
    expect(await runInbox("list --state done")).toMatchObject(none);
  });

  test("lists page by page", async () => {
    const ids = ["event-1", "event-2", "event-3"];
    await tasks.add("inbox", ...ids.map((id) => ({ id, body: "{}" })));
    const [one, two, more] = await runJson(bench, "inbox list --limit 2");
    const { cursor } = more as { readonly cursor: string };
    const rest = await runJson(bench, ["inbox", "list", "--limit", "2", "--cursor", cursor]);
    expect([one, two, ...rest].map((task) => (task as { readonly id: string }).id)).toEqual(ids);
    expectOneLine(await runInbox("list --cursor x"), 2, /--cursor: expected what the page before printed/);
  });

  test("lets dead tasks run again", async () => {
    await kill(tasks, "event-1", "event-2", "event-3");
    expectRun(await runInbox("retry event-1 event-3"), 0, {
      out: /^2 dead tasks of inbox in \S+ \(tables \S+\) will run again\n$/,
    });
    expect((await claim(tasks, 10)).map(({ id, attempt }) => [id, attempt])).toEqual([
      ["event-1", 1],
      ["event-3", 1],
    ]);
    expect(await stateOf("event-2")).toBe("dead");
  });

  test("shows when a task was done, and that it was let run again before", async () => {
    await tasks.add("inbox", { id: "event-1", body: "{}" }, { id: "event-2", body: "{}" });
    for (const owned of await claim(tasks, 2)) await fail(tasks, owned);
    const shown = async (id: string) => (await runInbox(`show ${id}`)).out;
    expect(await shown("event-1")).not.toContain("retried");
    expect(await shown("event-1")).toMatch(/^attempt 1 +[^\n]*\ngiven up +\S+ \S+Z, just now\nbody$/m);
    await runInbox("retry event-1");
    expect(await shown("event-1")).toMatch(
      /^attempt 1 +[^\n]*\nretried +after that, with all attempts; [^\n]*\nbody$/m,
    );
    const [again] = await claim(tasks, 1);
    if (again !== undefined) await tasks.finish(again);
    expect(await shown("event-1")).toMatch(
      /^attempt 1 +[^\n]*\nretried +[^\n]*\ndone +\S+ \S+Z, just now\nbody$/m,
    );
    await runInbox("discard event-2 --note TICKET-1 --yes");
    expect(await shown("event-2")).toMatch(/: discarded by the-login: TICKET-1[^\n]*\ndone +/m);
    expect(await shown("event-2")).not.toContain("retried");
  });

  test("--quiet prints nothing unless something is dead or paused, of any queue", async () => {
    const quiet = { code: 0, out: "", err: "" };
    const cron = () => runOn(bench, "work --quiet");
    expect(await cron()).toEqual(quiet);
    await tasks.add("inbox", { id: "event-1", body: "{}" });
    expect([await cron(), await runInbox("--quiet")]).toEqual([quiet, quiet]);
    await tasks.pause("outcomes", { by: "anna", note: "the bank is down" });
    expect(await cron()).toMatchObject({ code: 1, out: expect.stringContaining("paused by anna") });
    expect(await runInbox("--quiet")).toEqual(quiet);
  });

  test("--quiet ends with 1 where a task waits and no worker has looked at it for long", async () => {
    const old = tasksOf(bench.behind(2 * hourMs));
    await old.add("inbox", { id: "later", body: "{}", delayMs: 4 * hourMs });
    expect(await runInbox("--quiet")).toEqual({ code: 0, out: "", err: "" });
    await old.add("inbox", { id: "late", body: "{}" });
    const late = "\na task was added to the queue inbox 2 h ago, and is not done:\n  countersign inbox list ";
    expect(await runInbox("--quiet")).toMatchObject({ code: 1, out: expect.stringContaining(late) });
    expect((await runOn(bench, "work --quiet --json")).code).toBe(1);
  });

  test("lets all run again, or those since a time, once that is confirmed", async () => {
    await kill(tasksOf(bench.behind(2 * hourMs)), "event-1");
    await kill(tasks, "event-2");
    expectOneLine(
      await runInbox("retry --all"),
      2,
      /nobody can be asked without a terminal: add --yes to retry/,
    );
    const refused = await runInbox("retry --all", { ask: () => Promise.resolve("yes") });
    expectRun(refused, 1, { err: /^2 dead tasks of .*\nerror: not conf/ });
    const since = new Date(Date.now() - hourMs).toISOString();
    expect(await runInbox(`retry --since ${since} --yes --json`)).toMatchObject({
      code: 0,
      out: '{"queue":"inbox","retried":1}\n',
    });
    expect([await stateOf("event-1"), await stateOf("event-2")]).toEqual(["dead", "open"]);
    const asked = await runInbox("retry --all", { ask: () => Promise.resolve("retry") });
    expect(asked).toMatchObject({ code: 0, err: expect.stringMatching(/^1 dead task of inbox in /) });
    expectRun(await runInbox("retry --all --yes"), 1, { out: /^0 dead/ });
  });

  test.each([
    ["retry open", 1, /^error: open: open, not dead; nothing was changed\n$/],
    ["discard dead open --note why --yes", 1, /^error: open: open, not dead; nothing was changed\n$/],
    ["retry dead unknown", 1, /^error: unknown: unknown in the queue inbox: /],
    ["show unknown", 1, /^error: unknown: unknown in the queue inbox: /],
    ["retry", 2, /say which/],
    ["retry dead --all --yes", 2, /say which/],
    ["retry --since yesterday --yes", 2, /--since: expected a time with its zone/],
    ["retry --since 2026-11-24T08:30 --yes", 2, /--since: expected a time with its zone/],
    ["discard dead --yes", 2, /--note: say why/],
    ["discard dead --note why", 2, /add --yes to discard/],
    ["discard dead --note why --yes --retention-days 2", 2, /--retention-days: expected/],
    ["pause", 2, /--note: say why/],
    ["pause --note why --queue The_Inbox", 2, /--queue: expected 1 to 64 of/],
    ["show", 2, /give one task/],
  ])("%s ends with %d and changes nothing", async (command, code, line) => {
    await kill(tasks, "dead");
    await tasks.add("inbox", { id: "open", body: "{}" });
    const ended = await runInbox(command);
    expect(ended).toMatchObject({ code, err: expect.stringMatching(line) });
    expect([await stateOf("dead"), await stateOf("open")]).toEqual(["dead", "open"]);
    expect(await claim(tasks, 10)).toHaveLength(1);
  });

  test("discards what is confirmed, and keeps who and why", async () => {
    await kill(tasks, "event-1", "event-2");
    const answering = (last: string) => (question: string) =>
      Promise.resolve(question.startsWith("Note") ? "TICKET-1" : last);
    const refused = await runInbox("discard event-1", { ask: answering("yes") });
    expect(refused).toMatchObject({ code: 1, err: "error: not confirmed; nothing was changed\n" });
    expect(await stateOf("event-1")).toBe("dead");
    const { code, out } = await runInbox("discard event-1", { ask: answering("discard") });
    expect(code).toBe(0);
    expect(out).toMatch(/^event-1 +dead .*\ndiscarded: these never run; /m);
    expect(out).toMatch(/\n\S+Z discarded 1 dead task of inbox, by the-login, note "TICKET-1"\n$/);
    const reason = "discarded by the-login: TICKET-1";
    expect(await tasks.read("inbox", "event-1")).toMatchObject({ state: "done" });
    expect((await tasks.read("inbox", "event-1"))?.failures.at(-1)).toMatchObject({ reason });
    expect((await runInbox("list --state done")).out).toContain(`ended just now; ${reason}`);
    expect(await runInbox("discard event-2 --by anna --note why --yes --json")).toMatchObject({
      code: 0,
      out: '{"queue":"inbox","discarded":1,"by":"anna","note":"why"}\n',
    });
  });

  test("remembers a discarded task for 7 days, or as long as --retention-days says", async () => {
    await kill(tasks, "usual", "longer");
    await runInbox("discard usual --note why --yes");
    await runInbox("discard longer --note why --yes --retention-days 60");
    await tasksOf(bench.behind(-6 * 24 * hourMs)).prune();
    expect(await stateOf("usual")).toBe("done");
    await tasksOf(bench.behind(-8 * 24 * hourMs)).prune();
    expect([await stateOf("usual"), await stateOf("longer")]).toEqual([undefined, "done"]);
  });

  test("pauses and resumes, and says by whom and why", async () => {
    await tasks.add("inbox", { id: "event-1", body: "{}" });
    const paused = await runInbox("pause --by anna --note TICKET-1");
    expectRun(paused, 0, { out: / is paused, by anna, note "TICKET-1"\n$/ });
    expect(await claim(tasks, 1)).toEqual([]);
    const { code, out } = await runInbox("");
    expect(code).toBe(1);
    expect(out).toMatch(/^inbox +1 .* paused by anna, note "TICKET-1", just now$/m);
    expect(out).toMatch(/^inbox is paused; to go on:\n {2}countersign inbox resume /m);
    const [, summary = ""] = /"paused":(\{.*?\})/.exec((await runInbox("status --json")).out) ?? [];
    expect(JSON.parse(summary)).toEqual({ by: "anna", note: "TICKET-1", at: expect.any(String) });
    expect(await runInbox("resume")).toMatchObject({ code: 0, out: expect.stringMatching(/goes on\n$/) });
    expect(await claim(tasks, 1)).toHaveLength(1);
    expectRun(await runInbox("resume"), 1, { out: /was not paused\n$/ });
  });

  test.each(["pause --note why", "drain"])(
    "says of %s that a mistyped queue has no task",
    async (command) => {
      expect(await runInbox(`${command} --queue inbxo`)).toMatchObject({ code: 0, err: "" });
      await tasks.add("inbox", { id: "event-1", body: "{}" });
      expectRun(await runInbox(`${command} --queue inbxo`), 0, {
        err: /^note: no task is in inbxo in .*; there are tasks in inbox\n$/,
      });
      expect(await runInbox(`${command} --timeout 1`.replace(/(?<=why) .*/, ""))).toMatchObject({
        err: "",
      });
    },
  );

  test("waits until nothing is open", async () => {
    await tasks.add("inbox", { id: "event-1", body: "{}" });
    const [owned] = await claim(tasks, 1);
    const late = await runInbox("drain --timeout 1 --json");
    expect({ code: late.code, left: JSON.parse(late.out) as unknown }).toMatchObject({
      code: 1,
      left: { open: 1, running: 1 },
    });
    const draining = runInbox("drain");
    if (owned !== undefined) await tasks.finish(owned);
    expectRun(await draining, 0, { out: /^nothing is open in inbox in / });
  });

  test("waits of a paused queue for what runs, and says what is left", async () => {
    await tasks.add("inbox", { id: "event-1", body: "{}" }, { id: "event-2", body: "{}" });
    const [owned] = await claim(tasks, 1);
    await tasks.pause("inbox", { by: "anna", note: "why" });
    const draining = runInbox("drain");
    if (owned !== undefined) await tasks.finish(owned);
    expect(await draining).toMatchObject({ code: 1, out: expect.stringMatching(/^inbox +1 +0 +0 +1 /m) });
  });

  test("is known to the doctor: dead, paused, and old unless meant to wait", async () => {
    const old = tasksOf(bench.behind(2 * hourMs));
    const findings = async () => {
      const { out } = await runOn(bench, "doctor --json");
      const { findings: found } = JSON.parse(out) as { findings: { id: string; message: string }[] };
      return found.filter(({ id }) => /^(?:tasks-|queue-)/.test(id) && id !== "tables-missing");
    };
    const waiting = Array.from({ length: 1_001 }, (_, index) => ({
      id: `later ${index}`,
      body: "{}",
      delayMs: 4 * hourMs,
    }));
    await old.add("expected", ...waiting);
    await tasks.add("inbox", { id: "new", body: "{}" });
    expect(await findings()).toEqual([]);
    await old.add("expected", { id: "late", body: "{}" });
    await kill(tasks, "dead");
    await tasks.pause("outcomes", { by: "anna", note: "TICKET-1" });
    const [dead, late, paused] = [
      "1 dead task in the queue inbox",
      /expected 2 h ago/,
      /outcomes is paused by anna/,
    ];
    const expected = [
      { id: "tasks-dead", message: dead },
      { id: "tasks-old", message: expect.stringMatching(late) },
      { id: "queue-paused", message: expect.stringMatching(paused) },
    ].map((finding) => expect.objectContaining({ ...finding, severity: "warning" }));
    const found = await findings();
    expect(found).toEqual(expect.arrayContaining(expected));
    expect(found).toHaveLength(3);
  });
});

onEngines(withoutTasks, "countersign inbox", (bench) => {
  test("says that there is no table of work", async () => {
    const line = / has no table of work; tasks are rows of PostgreSQL, /;
    expectOneLine(await run(["inbox", "--store-url", bench.url]), 2, line);
  });
});

onEngines(engines.slice(0, 1), "countersign outcomes and work", (bench) => {
  test("outcomes counts what is expected too, and has a queue of its own", async () => {
    const tasks = tasksOf(bench);
    await tasks.add("outcomes", { id: "key-1", body: "{}" });
    await tasks.add("outcomes-expected", { id: "key-1", body: "{}" });
    await tasks.add("inbox", { id: "event-1", body: "{}" });
    const { out } = await runOn(bench, "outcomes --json");
    expect(out.match(/(?<="queue":")[\w-]+/g)).toEqual(["outcomes", "outcomes-expected"]);
    const text = (await runOn(bench, "outcomes")).out;
    expect(text).toContain(
      "\n1 open in outcomes-expected:\n  countersign outcomes list --queue outcomes-expected",
    );
    expect(text).not.toContain("open in outcomes:");
    expect(await runJson(bench, "outcomes list")).toMatchObject([{ queue: "outcomes", id: "key-1" }]);
    const other = await runJson(bench, "outcomes list --queue outcomes-expected");
    expect(other).toMatchObject([{ queue: "outcomes-expected", id: "key-1" }]);
  });

  test("outcomes ends with 1 while an expected outcome is overdue, and not once it was reported", async () => {
    const tasks = tasksOf(bench);
    const queue = "outcomes-expected";
    await tasks.add(queue, { id: "key-1", body: "" }, { id: "key-2", body: "", delayMs: hourMs });
    expect((await runOn(bench, "outcomes --quiet")).code).toBe(0);
    const [looked] = await tasks.claim({ queue, limit: 1, token: "token", leaseMs: 60_000 });
    expect(await tasks.fail(looked!, { reason: "no outcome was reported in time", retryInMs: hourMs })).toBe(
      true,
    );
    const { code, out } = await runOn(bench, "outcomes");
    expect({ code, out }).toEqual({
      code: 1,
      out: expect.stringContaining(
        `\n1 overdue in ${queue}:\n  countersign outcomes list --state open --queue ${queue}`,
      ),
    });
    // The platform looks again in an hour.
    await tasks.add("outcomes", { id: "key-1", body: "{}" });
    expect(await runOn(bench, "outcomes --quiet")).toMatchObject({ code: 0, out: "" });
  });

  test("outcomes ends with 1 where no worker runs that would look at what is due", async () => {
    const tasks = tasksOf(bench.behind(hourMs));
    await tasks.add(
      "outcomes-expected",
      { id: "key-1", body: "" },
      { id: "key-2", body: "", delayMs: hourMs },
    );
    expect(await runOn(bench, "outcomes --quiet")).toMatchObject({
      code: 1,
      out: expect.stringContaining("\n1 overdue in outcomes-expected:\n"),
    });
    await tasksOf(bench).add("outcomes", { id: "key-1", body: "{}" });
    expect(await runOn(bench, "outcomes --quiet")).toMatchObject({ code: 0, out: "" });
  });

  test("outcomes finds the one that is overdue behind a page of those reported since", async () => {
    const tasks = tasksOf(bench);
    const [queue, late] = ["outcomes-expected", Array.from({ length: 100 }, (_, at) => `late-${at}`)];
    for (const ids of [late, ["missing"]]) {
      await tasks.add(queue, ...ids.map((id) => ({ id, body: "" })));
      for (const task of await tasks.claim({ queue, limit: 100, token: "token", leaseMs: 60_000 })) {
        await tasks.fail(task, { reason: "no outcome was reported in time", retryInMs: hourMs });
      }
    }
    await tasks.add("outcomes", ...late.map((id) => ({ id, body: "{}" })));
    expect(await runOn(bench, "outcomes --quiet")).toMatchObject({
      code: 1,
      out: expect.stringContaining(`\n1 overdue in ${queue}:\n`),
    });
  });

  test("work wants the name of a queue, except for status", async () => {
    const flags = [
      ["list"],
      ["retry", "x"],
      ["discard", "x"],
      ["pause"],
      ["resume"],
      ["drain"],
      ["show", "x"],
    ];
    for (const command of flags) {
      expectOneLine(
        await runOn(bench, ["work", ...command]),
        2,
        /required option '--queue <name>' not specified/,
      );
    }
    expectRun(await runOn(bench, "work"), 0, { out: /^no queue has tasks/ });
  });
});

function tasksOf({ tasks }: Pick<OperatorBench, "tasks">): Tasks {
  if (tasks === undefined) throw new Error("the engine keeps no tasks");
  return tasks;
}

function claim(tasks: Tasks, limit: number) {
  return tasks.claim({ queue: "inbox", limit, token: `token-${Math.random()}`, leaseMs: 60_000 });
}

async function fail(
  tasks: Tasks,
  task: Awaited<ReturnType<typeof claim>>[number] | undefined,
  reason = "why",
) {
  if (task === undefined) throw new Error("nothing was claimed");
  expect(await tasks.fail(task, { reason, retryInMs: undefined })).toBe(true);
}

/** Adds tasks and gives them up. */
async function kill(tasks: Tasks, ...ids: readonly string[]): Promise<void> {
  await tasks.add("inbox", ...ids.map((id) => ({ id, body: "{}" })));
  for (const task of await claim(tasks, 100)) {
    if (ids.includes(task.id)) await fail(tasks, task);
  }
}
