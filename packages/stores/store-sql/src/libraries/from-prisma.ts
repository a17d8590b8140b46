import type { Database, SqlValue, StatementGate } from "@countersign/idempotency";
import type { StatementEffect } from "@countersign/idempotency/store";
import { dialectOf, type Dialect } from "./driver-connection.ts";
import { effectOf } from "./gated-connection.ts";
import { rowList } from "./rows.ts";
import { GatedTransactions } from "./transaction.ts";

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
  const transactions = new GatedTransactions<Tx>(library, "postgresql");
  // The same transactions for the store, whose statements pass no gate.
  const own = new WeakMap<Tx, Tx>();
  return {
    dialect: "postgresql",
    library,
    run: (work) =>
      transactions.run(
        (run) => Promise.resolve(prisma.$transaction(run, { maxWait, timeout })),
        (opened: Tx, gate) => {
          const tx = gatedClient(opened, gate);
          own.set(tx, opened);
          return tx;
        },
        work,
      ),
    gateOf: (tx) => transactions.gateOf(tx),
    async query(tx, text, values) {
      // A nested transaction has none: its statements pass the gate, and are the handler's.
      const opened = own.get(tx) ?? (isTransaction(tx) ? tx : undefined);
      if (opened !== undefined) return send(opened, text, values);
      throw new TypeError("fromPrisma: needs the transaction client that the handler was given");
    },
    alone: (text, values) => send(prisma, text, values),
  };
}

async function send(executor: PrismaExecutor, text: string, values: readonly SqlValue[]) {
  return rowList(library, await executor.$queryRawUnsafe(text, ...values));
}

/** The client of a transaction, or one of its models, whose calls pass the gate when they are awaited: Prisma sends nothing before. */
function gatedClient<Client extends object>(client: Client, gate: StatementGate): Client {
  return new Proxy(client, {
    get(target, name): unknown {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member === "object" && member !== null && typeof name === "string")
        return gatedClient(member, gate);
      if (typeof member !== "function" || typeof name !== "string") return member;
      return (...values: unknown[]): unknown => {
        const forbidden = rawCall.test(name) ? gate.forbids(rawText(values)) : undefined;
        if (gate.isOpen && forbidden !== undefined) return gate.refuse(forbidden);
        // A nested transaction gets a client of its own.
        const given = values.map((value) =>
          name === "$transaction" && typeof value === "function"
            ? (inner: object): unknown => Reflect.apply(value, undefined, [gatedClient(inner, gate)])
            : value,
        );
        const effect = (result: unknown): StatementEffect => prismaEffect(name, values, result);
        return gatedAnswer(Reflect.apply(member, target, given), gate, effect);
      };
    },
  });
}

const rawCall = /^\$(?:execute|query)Raw/;

/** The text of a raw call: a text, a template, or what `Prisma.sql` and typed SQL make, with the parts in it that are no values. */
function rawText([first, ...values]: readonly unknown[]): string | undefined {
  if (typeof first === "string") return first;
  if (Array.isArray(first)) {
    return first.reduce<string>((text, part: unknown, index) => {
      const inner = index === 0 ? "" : (insertedText(values[index - 1]) ?? "$1");
      return `${text}${inner}${String(part)}`;
    }, "");
  }
  const { sql }: { readonly sql?: unknown } = Object(first);
  return insertedText(first) ?? (typeof sql === "string" ? sql : undefined);
}

function insertedText(value: unknown): string | undefined {
  const { strings, values }: { readonly strings?: unknown; readonly values?: unknown } = Object(value);
  return Array.isArray(strings) && Array.isArray(values) ? strings.join("$1") : undefined;
}

const changes = /^(?:create|update|upsert|delete)/;
const changesRows = /^\s*(?:INSERT|UPDATE|DELETE|MERGE)\b/i;

/** What a call of Prisma's has changed, by its name and its result: a record, records, or their number. */
function prismaEffect(name: string, values: readonly unknown[], result: unknown): StatementEffect {
  const text = rawText(values);
  // $executeRaw gives the number of rows of a SELECT too.
  const isCounted = name.startsWith("$executeRaw") && text !== undefined && changesRows.test(text);
  if (changes.test(name) || isCounted) {
    const count: unknown = typeof result === "number" ? result : Reflect.get(Object(result), "count");
    if (Array.isArray(result)) return result.length > 0 ? "write" : "idle";
    return typeof count === "number" && count === 0 ? "idle" : "write";
  }
  return effectOf(text, undefined);
}

/** A promise of Prisma's that is sent when it is awaited; a relation that is asked of it is another one. */
function gatedAnswer(
  answer: unknown,
  gate: StatementGate,
  effect: (result: unknown) => StatementEffect,
): unknown {
  if (typeof answer !== "object" || answer === null || typeof Reflect.get(answer, "then") !== "function") {
    return answer;
  }
  let sent: Promise<unknown> | undefined;
  const settle = (): Promise<unknown> =>
    (sent ??= gate.send(async () => {
      // oxlint-disable-next-line typescript/await-thenable -- a PrismaPromise
      return await answer;
    }, effect));
  return new Proxy(answer, {
    get(target, name): unknown {
      if (name === "then" || name === "catch" || name === "finally") {
        return (...values: unknown[]): unknown =>
          Reflect.apply(Reflect.get(settle(), name), settle(), values);
      }
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return (...values: unknown[]): unknown =>
        gatedAnswer(Reflect.apply(member, target, values), gate, effect);
    },
  });
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
