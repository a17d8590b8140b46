import type { AnswerStore, TransactionAnswerStore, TransactionMode } from "@countersign/idempotency";
import { answerOf, type Returned, type Steps } from "@countersign/idempotency/store";
import type { Guarded, SqlEngine } from "../sql/engine.ts";
import { PrunedTable } from "../sql/pruned-table.ts";
import { fragment, raw } from "../sql/sql.ts";
import { equal } from "../sql/statements.ts";

/** Keeps the responses of done keys. Each step commits by itself. */
export class ResponseTable<Tx, Mode extends TransactionMode>
  extends PrunedTable<Mode>
  implements AnswerStore
{
  readonly retentionMs: number;
  protected readonly server: SqlEngine<Tx, Mode>;

  constructor(server: SqlEngine<Tx, Mode>, retentionMs: number) {
    const { dialect, names, name } = server;
    const { until } = dialect;
    super(server, `${name} answer store`, {
      table: names.answers,
      key: Object.keys(dialect.ids.response("")),
      until,
      isExpired: (now) => fragment`${raw(until)} <= ${now}`,
    });
    this.server = server;
    this.retentionMs = retentionMs;
  }

  keep(token: string, response: Uint8Array): Returned<Mode, void> {
    return this.run(() => this.#keep(token, response));
  }

  find(token: string): Returned<Mode, Uint8Array | undefined> {
    return this.run(() => this.#find(token));
  }

  *#keep(token: string, response: Uint8Array): Steps<void> {
    this.gate.assertToken(token);
    const statement = this.keeping(token, response);
    this.assertKept(yield* answerOf(this.server.change(this.name, statement)));
  }

  *#find(token: string): Steps<Uint8Array | undefined> {
    this.gate.assertToken(token);
    const { dialect, names } = this.server;
    const isLive = fragment`${raw(dialect.until)} > ${this.server.now()}`;
    const [row] = yield* answerOf(
      this.server.read(
        this.name,
        fragment`SELECT answer FROM ${raw(names.answers)} WHERE ${equal(dialect.ids.response(token))} AND ${isLive}`,
        1,
      ),
    );
    if (row === undefined) return undefined;
    const { answer } = row;
    if (answer instanceof Uint8Array) return answer;
    throw new Error(`${this.name}: the database library gave no bytes where there are always some`);
  }

  protected keeping(token: string, response: Uint8Array): Guarded {
    if (!(response instanceof Uint8Array)) throw new TypeError(`${this.name}: the answer must be bytes`);
    const { dialect, names } = this.server;
    const id = dialect.ids.response(token);
    const answer = dialect.bytes(response);
    const until = dialect.after(this.server.now(), this.retentionMs);
    const set = {
      answer: dialect.proposed("answer", answer),
      [dialect.until]: dialect.proposed(dialect.until, until),
    };
    return (
      guard,
    ) => fragment`${dialect.insert(names.answers, [{ ...id, answer, [dialect.until]: until }], guard)}
${dialect.onConflict({ key: Object.keys(id), set })}`;
  }

  /** A row that stays as it was may count as none where an INSERT does not tell what it has added. */
  protected assertKept(changed: number): void {
    if (changed === 0 && this.server.dialect.hasReturning) throw this.server.unwritten(this.name);
  }
}

/** The same also in the transactions of a database. */
export class TransactionResponseTable<Tx, Mode extends TransactionMode, Of extends object>
  extends ResponseTable<Tx, Mode>
  implements TransactionAnswerStore<Tx>
{
  readonly database: Of;

  constructor(server: SqlEngine<Tx, Mode>, retentionMs: number, database: Of) {
    super(server, retentionMs);
    this.database = database;
  }

  keepIn(tx: Tx, token: string, response: Uint8Array): Returned<Mode, void> {
    return this.run(() => this.#keepIn(tx, token, response));
  }

  *#keepIn(tx: Tx, token: string, response: Uint8Array): Steps<void> {
    this.gate.assertTokenIn(token);
    const step = { tx, store: this.name, step: "keepIn" };
    this.assertKept(yield* answerOf(this.server.changeWithin(step, this.keeping(token, response))));
  }
}
