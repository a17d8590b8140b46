// idempotencyGuard() around a handler that gets the transaction of its key.
import type { TransactionAnswerStore } from "@countersign/idempotency";
import { describe, expect, test } from "@jest/globals";
import { collectNotices } from "../support/runs/faulty-store.ts";
import { isWhole } from "../support/runs/share.ts";
import { guardAdapters, type GuardAdapter } from "./guard-adapters.ts";
import { fail, guardRows, type GuardRow } from "./guard-rows.ts";
import { after, engines, type Tables, type Tx } from "./payments/engines.ts";

type Answers = TransactionAnswerStore<Tx>;

/** Remembers the tokens that were kept. */
function observed(answers: Answers, tables: Tables, { afterAnswer }: GuardRow) {
  const tokens: string[] = [];
  const keepIn: Answers["keepIn"] = (tx, token, bytes) => {
    tokens.push(token);
    const isFirst = tokens.length === 1;
    return after(answers.keepIn(tx, token, bytes), () => isFirst && afterAnswer?.(tables, tx)) as void;
  };
  const { database, engine } = answers;
  const find: Answers["find"] = (token) => answers.find(token);
  return { tokens, answers: { database, engine, find, keepIn, keep: fail, prune: () => 0, close() {} } };
}

async function play(adapter: GuardAdapter, tables: Tables, row: GuardRow) {
  const { options, first, sends, replay, appStatus = 500 } = row;
  const stores = tables.process();
  const its = replay && observed(await tables.answersOf(stores), tables, row);
  const { codes, stop } = collectNotices();
  let calls = 0;
  const handle = (_request: object, { tx }: { readonly tx: Tx }): unknown => {
    calls += 1;
    const isFirst = calls === 1;
    return after(tables.sql(tx, "INSERT INTO payments VALUES ('paid')"), () => isFirst && first?.());
  };
  const opened = await adapter.open(
    {
      ...options,
      stores,
      handle,
      ...(its && { replay: { callers: "shared", ...replay, answers: its.answers } }),
    },
    appStatus,
  );
  const answers: string[] = [];
  for (const [method = "", key = ""] of sends.map((sent) => sent.split(" "))) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const { status, headers, body } = await opened.send(method, key);
    const again =
      headers["idempotency-replayed"] === "true" ? `again ${String(headers["content-type"] ?? "")} ` : "";
    answers.push(`${status} ${again}${body}`);
  }
  await opened.close();
  stop();
  const tokens = new Set(its?.tokens);
  const found = await Promise.all([...tokens].map(async (token) => its?.answers.find(token)));
  return {
    answers,
    paid: await tables.paid(),
    notices: codes(),
    kept: [its?.tokens.length ?? 0, found.filter(Boolean).length],
  };
}

for (const adapter of guardAdapters.filter(({ isOnServers }) => isWhole || isOnServers === true)) {
  const its = engines.filter(({ name }) => name === "sqlite" || (isWhole && adapter.isOnServers));
  describe.each(its)(`idempotencyGuard() at ${adapter.name}, on $name`, ({ name, open }) => {
    const rows = guardRows.filter(
      ({ on = [adapter.name], engines: where = [name] }) => on.includes(adapter.name) && where.includes(name),
    );
    test.each(rows)("$title", async (row) => {
      const { answers, paid, notices, kept } = await play(adapter, await open(), row);
      expect(answers).toEqual(row.answers.map((form) => expect.stringMatching(form)));
      expect(paid).toHaveLength(row.paid);
      expect(notices).toEqual(row.notices ?? []);
      expect(kept).toEqual(row.kept ?? [0, 0]);
    });
  });
}
