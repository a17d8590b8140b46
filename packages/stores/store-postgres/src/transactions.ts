import type {
  Database,
  KeyBegun,
  TransactionBegun,
  TransactionClaim,
  TransactionFault,
  TransactionKey,
  TransactionStore,
} from "@countersign/idempotency";
import {
  type Row,
  StoreGate,
  decodeText,
  encodeText,
  transactionBroken,
} from "@countersign/idempotency/store";
import type { BeginCall } from "./begin-function.ts";
import type { Engine } from "./engine.ts";
import { explained, sqlStateOf } from "./errors.ts";
import { faultOf } from "./faults.ts";
import type { ResolvedPostgresOptions } from "./options.ts";
import { millisecondsOf, singleRow } from "./queryable.ts";
import { digestNonce, encodeKey } from "./stored-key.ts";
import { assertFunctionThere, assertTransactions } from "./transaction-proof.ts";
import { type TransactionStatements, inlined, transactionStatements } from "./transaction-statements.ts";

const name = "postgres transactions";

/** Why a key is held whose handler ended its transaction: nobody knows what it has paid. */
const brokenReason = "transaction-broken";

// By SQLSTATE of the statements that end the savepoint. `endedBy`: the transaction that has written the key is over.
const swallowed = "25P02";
const endedBy: Readonly<Record<string, string>> = {
  "25P01": "it sent COMMIT or ROLLBACK itself, and what it wrote afterwards was not in the transaction",
  "3B001": "it sent COMMIT or ROLLBACK itself and began another transaction, or released our savepoint",
};

export class PostgresTransactions<Tx> implements TransactionStore<Tx, "async"> {
  readonly engine = "postgresql";
  readonly mode = "async";
  readonly retentionMs: number;
  readonly #gate = new StoreGate(name);
  readonly #engine: Engine;
  readonly #options: ResolvedPostgresOptions;
  readonly database: Database<Tx>;
  readonly #sql: TransactionStatements;
  /** By transaction: the keys that were begun, and neither kept nor undone yet. */
  readonly #open = new WeakMap<object, readonly TransactionKey[]>();
  #proof: Promise<void> | undefined;

  constructor(engine: Engine, options: ResolvedPostgresOptions, database: Database<Tx>) {
    this.retentionMs = options.retentionMs;
    this.#engine = engine;
    this.#options = options;
    this.database = database;
    this.#sql = transactionStatements(options);
  }

  async run<T>(work: (tx: Tx) => T | Promise<T>): Promise<T> {
    this.#gate.assertUsable();
    await this.#proven();
    return this.database.run(async (tx) => work(tx));
  }

  async begin(tx: Tx, claim: TransactionClaim): Promise<TransactionBegun> {
    this.#gate.assertTransaction(claim);
    const { nonce, recovery } = claim;
    const ordered = [...claim.keys];
    ordered.sort(byKey);
    const call = JSON.stringify({
      ...(nonce === undefined ? {} : { nonce: storedNonce(nonce) }),
      ...this.#callOf(ordered),
      // Whatever is not clearly `rerun` leaves an expired run to an operator.
      holds: recovery !== "rerun",
      waitMs: claim.waitMs,
      idleMs: claim.idleTimeoutMs,
    } satisfies BeginCall);
    try {
      const begun = inOrderOf(claim.keys, ordered, await this.#begin(tx, call, ordered.length === 0));
      const isBegun = (_key: TransactionKey, index: number): boolean => begun.keys[index]?.status === "begun";
      this.#setOpen(tx, claim.keys.filter(isBegun));
      return begun;
    } catch (error) {
      throw explained(name, this.#options.place, error);
    }
  }

  async keep(tx: Tx, keys: readonly TransactionKey[], more: boolean): Promise<void> {
    await this.#end(tx, keys, more ? this.#sql.keepSome : this.#sql.keepLast);
  }

  async undo(tx: Tx, keys: readonly TransactionKey[], more: boolean): Promise<void> {
    const freed = await this.#end(tx, keys, this.#sql.undo(this.#jsonOf(keys), more));
    // Else they would commit as done, and nothing is paid. A trigger can take the change back, a policy of row level security hide the row.
    if (freed.length < keys.length) throw this.#notFreed();
  }

  faultOf(error: unknown): TransactionFault | undefined {
    return faultOf(error);
  }

  close(): void {
    this.#gate.close();
  }

  async #begin(tx: Tx, call: string, keyless: boolean): Promise<TransactionBegun> {
    if (this.database.script !== undefined) {
      const text = `${this.#sql.begin(inlined(call))}; ${this.#sql.savepoint}`;
      return begunOf(singleRow(await this.database.script(tx, text))["answer"]);
    }
    const rows = await this.database.query(tx, this.#sql.begin("$1"), [call]);
    const begun = begunOf(singleRow(rows)["answer"]);
    if (keyless || begun.keys.some(({ status }) => status === "begun")) {
      await this.database.query(tx, this.#sql.savepoint, []);
    }
    return begun;
  }

  async #end(
    tx: Tx,
    keys: readonly TransactionKey[],
    statements: readonly string[],
  ): Promise<readonly Row[]> {
    const others = this.#othersOpen(tx, keys);
    try {
      const rows = await this.#send(tx, statements);
      this.#setOpen(tx, others);
      return rows;
    } catch (error) {
      const state = sqlStateOf(error);
      if (state === swallowed) {
        throw transactionBroken("it went on after a statement had failed; let the error through", error);
      }
      const what = state === undefined ? undefined : endedBy[state];
      if (what !== undefined) {
        throw transactionBroken(what, await this.#hold(tx, keys, others, error));
      }
      // A deferred constraint, which is the handler's.
      if (faultOf(error) !== undefined) throw error;
      throw transactionBroken(
        "the library took no statement any more; return only when all is written",
        error,
      );
    }
  }

  /**
   * Where the handler's own ROLLBACK has freed the key, it may have paid afterwards: an operator has to look. Where its own COMMIT has made
   * the `others` done, nobody has worked on them: they are freed. On the same connection, as another one may never come. Returns the error
   * to show.
   */
  async #hold(
    tx: Tx,
    keys: readonly TransactionKey[],
    others: readonly TransactionKey[],
    error: unknown,
  ): Promise<unknown> {
    const call = JSON.stringify({
      ...this.#callOf(keys),
      holds: true,
      heldFor: brokenReason,
      waitMs: this.#options.lockTimeoutMs,
      idleMs: 0,
    } satisfies BeginCall);
    try {
      await this.database.query(tx, "ROLLBACK", []);
      await this.database.query(tx, this.#sql.begin("$1"), [call]);
      if (others.length > 0) await this.#free(tx, others);
      return error;
    } catch (failure) {
      return new AggregateError([error, failure], "the keys could not be left as they should be");
    }
  }

  async #free(tx: Tx, keys: readonly TransactionKey[]): Promise<void> {
    const call = this.#jsonOf(keys);
    await this.database.query(tx, this.#sql.free(call), []);
    // After a ROLLBACK there was nothing to free: what it gave is no measure.
    if ((await this.database.query(tx, this.#sql.done(call), [])).length > 0) throw this.#notFreed();
  }

  #notFreed(): Error {
    return new Error(`${name}: the server did not free the keys ${this.#options.place}; look for triggers`);
  }

  #setOpen(tx: Tx, keys: readonly TransactionKey[]): void {
    if (typeof tx === "object" && tx !== null) this.#open.set(tx, keys);
  }

  #othersOpen(tx: Tx, keys: readonly TransactionKey[]): readonly TransactionKey[] {
    const open = typeof tx === "object" && tx !== null ? (this.#open.get(tx) ?? []) : [];
    return open.filter(({ key }) => keys.every((ended) => ended.key !== key));
  }

  async #send(tx: Tx, statements: readonly string[]): Promise<readonly Row[]> {
    if (this.database.script !== undefined) return this.database.script(tx, statements.join("; "));
    const rows: Row[] = [];
    // oxlint-disable-next-line no-await-in-loop -- one connection
    for (const statement of statements) rows.push(...(await this.database.query(tx, statement, [])));
    return rows;
  }

  async #proven(): Promise<void> {
    this.#proof ??= this.#prove();
    try {
      await this.#proof;
    } catch (error) {
      // The next call proves again.
      this.#proof = undefined;
      throw error;
    }
  }

  async #prove(): Promise<void> {
    await this.#engine.ready();
    await assertFunctionThere(this.#engine, this.#options);
    await assertTransactions(this.database);
  }

  #callOf(keys: readonly TransactionKey[]): Pick<BeginCall, "keys" | "retentionMs" | "now"> {
    return {
      keys: keys.map(storedKey),
      retentionMs: this.retentionMs,
      ...(this.#options.now === undefined ? {} : { now: this.#options.now() }),
    };
  }

  #jsonOf(keys: readonly TransactionKey[]): string {
    return JSON.stringify(this.#callOf(keys));
  }
}

function byKey(one: TransactionKey, other: TransactionKey): number {
  return one.key < other.key ? -1 : 1;
}

/** The answers to keys that were asked in another order. */
function inOrderOf(
  keys: readonly TransactionKey[],
  asked: readonly TransactionKey[],
  { nonce, keys: answers }: TransactionBegun,
): TransactionBegun {
  const answerOf = new Map(asked.map((key, place) => [key, answers[place]]));
  return { nonce, keys: keys.flatMap((key) => answerOf.get(key) ?? []) };
}

function storedNonce(nonce: NonNullable<TransactionClaim["nonce"]>): NonNullable<BeginCall["nonce"]> {
  const digest = digestNonce(nonce.scope, nonce.nonce).toString("hex");
  return { digest, token: encodeText(nonce.token), retainMs: nonce.retainMs };
}

function storedKey({ key, token, fingerprint }: TransactionKey): BeginCall["keys"][number] {
  return { key: encodeKey(key), token: encodeText(token), fingerprint: encodeText(fingerprint) };
}

/** The answer of the function. */
function begunOf(answer: unknown): TransactionBegun {
  if (typeof answer !== "string") throw new TypeError("the PostgreSQL driver returned no text for a text");
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- made by our own function
  const { nonce, keys } = JSON.parse(answer) as {
    readonly nonce: "fresh" | "seen";
    readonly keys: readonly Readonly<Record<string, unknown>>[];
  };
  return { nonce, keys: keys.map(keyBegunOf) };
}

function keyBegunOf({ status, remainingSeconds, ...texts }: Readonly<Record<string, unknown>>): KeyBegun {
  if (status === "begun") return { status };
  const fingerprint = decodeText(String(texts["fingerprint"]));
  if (status === "done") return { status, fingerprint };
  if (status === "held") return { status, fingerprint, reason: decodeText(String(texts["reason"])) };
  if (status === "in-flight") return { status, fingerprint, remainingMs: millisecondsOf(remainingSeconds) };
  throw new Error("the function of the idempotency table gave an unknown status");
}
