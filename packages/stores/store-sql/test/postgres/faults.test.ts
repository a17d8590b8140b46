import { GuardError } from "@countersign/core";
import { fromPg } from "@countersign/store-sql/pg";
import { transactionBroken } from "@countersign/idempotency/store";
import { createStores } from "@countersign/store-sql";
import { afterAll, expect, test } from "@jest/globals";
import { Pool } from "pg";

const stores = createStores({ database: fromPg(new Pool()), pruneIntervalMs: 0 });
const { transactions } = stores;

afterAll(() => stores.close());

const error = (members: object, message = "failed"): Error => Object.assign(new Error(message), members);

test.each<[string, unknown, string | undefined]>([
  ["a serialization failure", error({ code: "40001" }), "conflict"],
  ["a deadlock", error({ code: "40P01" }), "conflict"],
  ["a deadlock that TypeORM wraps", error({ driverError: error({ code: "40P01" }) }), "conflict"],
  ["a deadlock that Sequelize wraps", error({ parent: error({ code: "40P01" }) }), "conflict"],
  ["a deadlock that Drizzle wraps", error({ cause: error({ code: "40P01" }) }), "conflict"],
  ["a deadlock in a raw query of Prisma", error({ code: "P2010", meta: { code: "40P01" } }), "conflict"],
  [
    "a deadlock behind a driver adapter of Prisma",
    error({ code: "P2010", meta: { driverAdapterError: error({ cause: { originalCode: "40P01" } }) } }),
    "conflict",
  ],
  ["a write conflict of Prisma", error({ code: "P2034" }), "conflict"],
  ["a time-out of Prisma's transaction", error({ code: "P2028" }), "unavailable"],
  ["a time-out of Prisma's pool", error({ code: "P2024" }), "unavailable"],
  ["a lock time-out", error({ code: "55P03" }), "locked"],
  ["a lost connection", error({ code: "08006" }), "unavailable"],
  ["a shutdown", error({ code: "57P01" }), "unavailable"],
  ["an idle session", error({ code: "25P03" }), "unavailable"],
  ["a server that is full", error({ code: "53300" }), "unavailable"],
  ["a refused line", error({ code: "ECONNREFUSED" }), "unavailable"],
  ["a reset line", error({ cause: error({ code: "ECONNRESET" }) }), "unavailable"],
  ["a broken pipe", error({ code: "EPIPE" }), "unavailable"],
  ["a line without an answer", error({ code: "ETIMEDOUT" }), "unavailable"],
  ["a line that postgres.js has lost", error({ code: "CONNECTION_CLOSED" }), "unavailable"],
  ["a line that postgres.js did not get", error({ code: "CONNECT_TIMEOUT" }), "unavailable"],
  ["a line that pg has lost", error({}, "Connection terminated unexpectedly"), "unavailable"],
  ["a time-out of pg's pool", error({}, "timeout exceeded when trying to connect"), "unavailable"],
  [
    "a statement of TypeORM's after its line was lost",
    error({ name: "QueryRunnerAlreadyReleasedError" }),
    "unavailable",
  ],
  ["a time-out of Knex's pool", error({ name: "KnexTimeoutError" }), "unavailable"],
  [
    "a time-out of Sequelize's pool",
    error({ name: "SequelizeConnectionAcquireTimeoutError" }),
    "unavailable",
  ],
  ["what ends the session", error({ severity: "FATAL", code: "XX000" }), "unavailable"],
  [
    "what ends the session, wrapped",
    error({ cause: error({ severity: "PANIC", code: "58030" }) }),
    "unavailable",
  ],
  ["an internal error", error({ severity: "ERROR", code: "XX000" }), "refused"],
  ["a cancelled statement", error({ code: "57014" }), "refused"],
  ["a row that is there", error({ code: "23505" }), "refused"],
  ["an error of PL/pgSQL", error({ code: "P0001" }), "refused"],
  ["a handler's own error", error({}), undefined],
  ["a handler's own code", error({ code: "no-such-account" }), undefined],
  ["a file that may not be read", error({ code: "EPERM" }), undefined],
  ["a validation of Prisma", error({ code: "P2002" }), undefined],
  [
    "a refusal",
    new GuardError({ status: 400, code: "no", message: "no", cause: error({ code: "40001" }) }),
    undefined,
  ],
  ["our own word", transactionBroken("it swallowed an error", error({ code: "25P02" })), undefined],
  ["no error", undefined, undefined],
])("faultOf() tells %s", (_case, thrown, fault) => {
  expect(transactions.faultOf(thrown)).toBe(fault);
});
