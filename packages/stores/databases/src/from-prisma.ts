import type { Database, SqlValue } from "@countersign/idempotency";
import { dialectOf, type Dialect } from "./driver-connection.ts";
import { rowList } from "./rows.ts";
import { inTransaction } from "./transaction.ts";

export interface PrismaExecutor {
  $queryRawUnsafe(text: string, ...values: SqlValue[]): PromiseLike<unknown>;
}

/** Milliseconds. */
export interface PrismaTransactionOptions {
  /** For a free connection, default 2,000. */
  readonly maxWait?: number;
  /** From BEGIN to COMMIT, then Prisma rolls back (P2028); default 60,000. Longer than the store's own bounds. */
  readonly timeout?: number;
}

export interface PrismaClientOf<Tx extends PrismaExecutor> extends PrismaExecutor {
  $connect(): PromiseLike<void>;
  $transaction(work: (tx: Tx) => Promise<void>, options: PrismaTransactionOptions): PromiseLike<unknown>;
}

const library = "Prisma";
const providers = new Map<unknown, Dialect>([
  ["postgresql", "postgresql"],
  ["postgres", "postgresql"],
]);

/**
 * A `PrismaClient` on PostgreSQL, also an extended one; handlers get its interactive transaction. Throws a TypeError on another engine.
 * Prisma does not tell that PostgreSQL answered COMMIT with ROLLBACK: only a last statement finds that out.
 */
export function fromPrisma<Tx extends PrismaExecutor>(
  prisma: PrismaClientOf<Tx>,
  { maxWait = 2_000, timeout = 60_000 }: PrismaTransactionOptions = {},
): Database<Tx> {
  if (isTransaction(prisma)) throw new TypeError("fromPrisma: needs a PrismaClient");
  const provider: unknown = Reflect.get(prisma, "_activeProvider");
  if (provider !== undefined) dialectOf("fromPrisma", provider, providers);
  assertMilliseconds("maxWait", maxWait);
  assertMilliseconds("timeout", timeout);
  return {
    dialect: "postgresql",
    library,
    run: (work) =>
      inTransaction((run) => Promise.resolve(prisma.$transaction(run, { maxWait, timeout })), work),
    async query(tx, text, values) {
      if (isTransaction(tx)) return send(tx, text, values);
      throw new TypeError("fromPrisma: needs the transaction client that the handler was given");
    },
    alone: (text, values) => send(prisma, text, values),
  };
}

async function send(executor: PrismaExecutor, text: string, values: readonly SqlValue[]) {
  return rowList(library, await executor.$queryRawUnsafe(text, ...values));
}

/** Prisma takes `$connect` from the client of a transaction, in types too. */
function isTransaction(value: unknown): boolean {
  const has = (name: string) => typeof Reflect.get(Object(value), name) === "function";
  return has("$queryRawUnsafe") && !has("$connect");
}

function assertMilliseconds(name: string, value: number): void {
  if (Number.isSafeInteger(value) && value > 0) return;
  throw new TypeError(`fromPrisma: ${name} must be a positive integer of milliseconds`);
}
