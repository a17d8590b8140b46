// Webhooks whose events commit with what their handlers write.
import type { TransactionStores } from "@countersign/idempotency";
import { createWebhookHandler } from "countersign/webhooks";
import { describe, expect, jest, test } from "@jest/globals";
import express5 from "express";
import express4 from "express4";
import { afterTest, testClock } from "../support/runs/after-test.ts";
import { sleep } from "../support/runs/eventually.ts";
import { allowWarnings } from "../support/runs/expect-warning.ts";
import { isOnMysqlAlone, isWhole } from "../support/runs/share.ts";
import { describeOnPostgres } from "../support/servers/engines.ts";
import { expressAdapter } from "./express-adapter.ts";
import { fastifyAdapter } from "./fastify-adapter.ts";
import { fetchAdapter } from "./fetch-adapter.ts";
import { honoAdapter } from "./hono-adapter.ts";
import { nodeAdapter } from "./node-adapter.ts";
import { after, engines, swallow, type Engine, type Tables, type Tx } from "./payments/engines.ts";
import { refusalWith } from "./payments/handler-rows.ts";
import type { Adapter } from "./scene.ts";
import { deliver, envelope, event, webhookScene } from "./webhook-scene.ts";

const adapters = [expressAdapter("express 5", express5), fetchAdapter];
// A webhook's transaction knows nothing of its adapter: without a server all rows of one take a second.
const others = [expressAdapter("express 4", express4), nodeAdapter, fastifyAdapter, honoAdapter];
const usual = isOnMysqlAlone ? "mariadb" : "sqlite";
const itsEngines = engines.filter(({ name }) => isWhole || name === usual);

interface EventWork {
  readonly id: string;
  /** How often this event's handler has begun. */
  readonly call: number;
  readonly tables: Tables;
  sql(this: void, text: string): unknown;
  /** Sends what a handler's `tx` does not take. */
  past(this: void, text: string): unknown;
  write(this: void): unknown;
}

const ids = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `ev_${index + 1}`);

function envelopeOf(names: readonly string[]): string {
  return envelope(names.map((name) => ({ ...event, event_id: name })));
}

/** A process that receives webhooks on these tables. */
async function receiver(
  adapter: Adapter,
  tables: Tables,
  {
    work = ({ write }) => write(),
    recovery = "hold",
    transactionTimeoutMs = 60_000,
  }: Pick<WebhookRow, "work" | "recovery" | "transactionTimeoutMs"> = {},
) {
  const clock = testClock();
  const stores = tables.process({ now: clock.now });
  const began: string[] = [];
  const outcomes: string[] = [];
  const failed: unknown[] = [];
  const handler = createWebhookHandler({
    stores,
    recovery,
    fallback({ event_id: id }, { tx }: { readonly tx: Tx }) {
      began.push(id);
      const call = began.filter((other) => other === id).length;
      const sql = (text: string): unknown => tables.sql(tx, text);
      const past = (text: string): unknown => tables.past(tx, text, stores);
      const write = (): unknown => sql(`INSERT INTO payments VALUES ('${id}')`);
      return work({ id, call, tables, sql, past, write });
    },
    onError({ event_id: id, outcome, error }) {
      outcomes.push(`${id} ${outcome}`);
      failed.push(error);
    },
    waitMs: 10_000,
    transactionTimeoutMs,
  });
  const opened = await adapter.open(
    webhookScene(false, { options: { handler, hmac: { limit: "100kb" } } })(),
  );
  return {
    stores,
    clock,
    began,
    outcomes,
    failed,
    send: async (names: readonly string[]) => (await opened.send(deliver(envelopeOf(names)))).status,
    close: () => opened.close(),
  };
}

interface WebhookRow {
  readonly title: string;
  readonly on?: readonly Engine["name"][];
  readonly work?: ((work: EventWork) => unknown) | undefined;
  readonly recovery?: "hold" | "rerun" | undefined;
  /** What lease mode has left of `ev_2`. */
  readonly left?: "running" | "expired" | "held";
  readonly transactionTimeoutMs?: number;
  /** The ids of each delivery. */
  readonly sends: readonly (readonly string[])[];
  readonly answers: readonly number[];
  readonly paid: readonly string[];
  /** Whose handlers began, in this order. */
  readonly began: readonly string[];
  readonly outcomes?: readonly string[];
  /** Of the key of `ev_2`, at the end. */
  readonly key?: "running" | "held" | "done";
}

const keyOfSecond = "webhook-event:ev_2";
const lease = { token: "lease", leaseMs: 1_000, recovery: "rerun" } as const;

/** Brings the key of `ev_2` where a process in lease mode has left it. */
async function leave(
  { idempotency }: TransactionStores<Tx>,
  clock: ReturnType<typeof testClock>,
  left: NonNullable<WebhookRow["left"]>,
): Promise<void> {
  await idempotency.claim(keyOfSecond, { ...lease, fingerprint: `${event.timestamp} ${event.type}` });
  if (left === "held") await idempotency.hold(keyOfSecond, lease.token, "why");
  if (left === "expired") clock.advance(lease.leaseMs);
}

const three = ids(3);
const failing = (fault: (work: EventWork) => unknown) => (work: EventWork) =>
  after(work.write(), () => (work.id === "ev_2" && work.call === 1 ? fault(work) : undefined));

const rows: readonly WebhookRow[] = [
  { title: "several events", sends: [three, three], answers: [200, 200], paid: three, began: three },
  {
    title: "one of several that fails: the others run again and are committed, and it runs again alone",
    work: failing(() => {
      throw new Error("not yet");
    }),
    sends: [three, three],
    answers: [503, 200],
    paid: ["ev_1", "ev_3", "ev_2"],
    began: ["ev_1", "ev_2", "ev_1", "ev_3", "ev_2"],
    outcomes: ["ev_2 failed"],
  },
  {
    title: "an event twice in one envelope",
    sends: [["ev_1", "ev_2", "ev_1", "ev_1"]],
    answers: [200],
    paid: ["ev_1", "ev_2"],
    began: ["ev_1", "ev_2"],
  },
  {
    title: "slow events, which take several commits",
    on: ["postgresql", "mariadb"],
    // A commit takes what begins within a tenth of it.
    transactionTimeoutMs: 5_000,
    work: ({ write }) => after(write(), () => sleep(300)),
    sends: [ids(5), ids(5)],
    answers: [200, 200],
    paid: ids(5),
    began: ids(5),
  },
  {
    title: "a deferred constraint of one event: each gets its own transaction",
    on: ["sqlite"],
    work: failing(({ sql, tables }) => sql(tables.late)),
    sends: [["ev_1", "ev_2"], ["ev_2"]],
    answers: [200, 200],
    paid: ["ev_1", "ev_2"],
    began: ["ev_1", "ev_2", "ev_1", "ev_2"],
  },
  {
    title: "an event that sends COMMIT by its tx: it has failed, and runs again",
    work: failing(({ sql }) => sql("COMMIT")),
    sends: [three, three],
    answers: [503, 200],
    paid: ["ev_1", "ev_3", "ev_2"],
    began: ["ev_1", "ev_2", "ev_1", "ev_3", "ev_2"],
    outcomes: ["ev_2 failed"],
    key: "done",
  },
  {
    title: "an event that ends the transaction past its tx: its key is held, the others are done",
    on: ["postgresql", "sqlite"],
    work: failing(({ past }) => past("ROLLBACK")),
    sends: [three, three],
    answers: [503, 503],
    paid: ["ev_1", "ev_3"],
    began: ["ev_1", "ev_2", "ev_1", "ev_3"],
  },
  {
    title: "an event that swallows an error by which SQLite rolled back",
    on: ["sqlite"],
    work: failing(({ sql, tables }) => swallow(() => sql(tables.breaking))),
    sends: [three],
    answers: [503],
    paid: ["ev_1", "ev_3"],
    began: ["ev_1", "ev_2", "ev_1", "ev_3"],
  },
  ...[409, 200].map((status): WebhookRow => ({
    title: `an event whose handler throws a refusal with ${status}: it is not acknowledged`,
    work: failing(() => {
      throw refusalWith(status);
    }),
    sends: [three, three],
    answers: [503, 200],
    paid: ["ev_1", "ev_3", "ev_2"],
    began: ["ev_1", "ev_2", "ev_1", "ev_3", "ev_2"],
    outcomes: ["ev_2 failed"],
    key: "done",
  })),
  ...(
    [
      ["runs in lease mode", "running", "running"],
      ["is held", "held", "held"],
      ["ran in lease mode, whose lease has ended", "expired", "held"],
    ] as const
  ).map(([title, left, key]): WebhookRow => ({
    title: `an event that ${title}: the others are committed, and it waits`,
    left,
    sends: [three, three],
    answers: [503, 503],
    paid: ["ev_1", "ev_3"],
    began: ["ev_1", "ev_3"],
    outcomes: [],
    key,
  })),
  {
    title: "an event that ran in lease mode, whose lease has ended, under rerun",
    left: "expired",
    recovery: "rerun",
    sends: [three, three],
    answers: [200, 200],
    paid: three,
    began: three,
    key: "done",
  },
  {
    title: "an event whose handler returns a promise on SQLite: its key is held, the others are done",
    on: ["sqlite"],
    work: failing(() => Promise.resolve()),
    sends: [three, three],
    answers: [503, 503],
    paid: ["ev_1", "ev_3"],
    began: ["ev_1", "ev_2", "ev_1", "ev_3"],
  },
];

/** Which events are in one transaction must not depend on how busy the machine is: on SQLite they share slices of 8 ms. */
function withoutSlices(): void {
  const clock = jest.spyOn(performance, "now").mockReturnValue(performance.now());
  afterTest(() => clock.mockRestore());
}

function describeRows(adapter: Adapter, engine: Engine): void {
  describe(`webhooks at ${adapter.name}, on ${engine.name}`, () => {
    test.each(rows.filter(({ on = [engine.name] }) => on.includes(engine.name)))("$title", async (row) => {
      allowWarnings(/^\[transaction-broken\]/);
      const tables = await engine.open();
      const { send, close, began, outcomes, stores, clock } = await receiver(adapter, tables, row);
      if (row.left !== undefined) await leave(stores, clock, row.left);
      withoutSlices();
      const answers: number[] = [];
      // oxlint-disable-next-line no-await-in-loop -- one delivery after the other
      for (const names of row.sends) answers.push(await send(names));
      await close();
      expect({ answers, began, paid: await tables.paid() }).toEqual({
        answers: row.answers,
        began: row.began,
        paid: row.paid,
      });
      if (row.outcomes !== undefined) expect(outcomes).toEqual(row.outcomes);
      const key = await stores.idempotency.read(keyOfSecond);
      if (row.key !== undefined) expect(key?.state).toBe(row.key);
    });
  });
}

for (const adapter of others) {
  for (const engine of engines.filter(({ name }) => name === "sqlite")) describeRows(adapter, engine);
}

for (const adapter of adapters) {
  for (const engine of itsEngines) describeRows(adapter, engine);

  describe.each(itsEngines)(`webhooks at ${adapter.name}, on $name`, (engine) => {
    test("the same events in opposite orders, in two processes: each once, without an error", async () => {
      const tables = await engine.open();
      const [one, other] = [await receiver(adapter, tables), await receiver(adapter, tables)];
      const names = ids(60);
      const answers = await Promise.all([
        one.send(names),
        other.send(names.map((_name, index) => names.at(-1 - index) ?? "")),
      ]);
      expect(answers).toEqual([200, 200]);
      expect([...one.failed, ...other.failed]).toEqual([]);
      expect(await tables.paid()).toHaveLength(names.length);
      expect(new Set(await tables.paid())).toEqual(new Set(names));
      await Promise.all([one.close(), other.close()]);
    });
  });
}

const { open } = engines[0] ?? {};
describeOnPostgres("on PostgreSQL", () => {
  test("120 events are three commits", async () => {
    const tables = await open?.();
    if (tables === undefined) throw new Error("no engine");
    const { send, close } = await receiver(fetchAdapter, tables, {
      work: ({ sql }) => sql("INSERT INTO payments SELECT txid_current()::text"),
    });
    expect(await send(ids(120))).toBe(200);
    const commits = await tables.paid();
    expect(commits).toHaveLength(120);
    expect(new Set(commits).size).toBe(3);
    await close();
  });
});
