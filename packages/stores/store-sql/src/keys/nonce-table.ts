import type { NonceClaim, NonceStore } from "@countersign/core";
import type { TransactionMode } from "@countersign/idempotency";
import { answerOf, encodeText, type Returned, type Row, type Steps } from "@countersign/idempotency/store";
import type { SqlEngine } from "../sql/engine.ts";
import { PrunedTable } from "../sql/pruned-table.ts";
import { fragment, raw, type Sql } from "../sql/sql.ts";
import { equal } from "../sql/statements.ts";

// Each time the nonce that stood in the way has been pruned before it was looked at.
const mostTries = 5;

/** The nonce store of the verifier. Each claim commits by itself. */
export class NonceTable<Mode extends TransactionMode> extends PrunedTable<Mode> implements NonceStore {
  readonly #server: SqlEngine<never, Mode>;

  constructor(server: SqlEngine<never, Mode>) {
    const { dialect, names, name } = server;
    const { until } = dialect;
    super(server, `${name} nonce store`, {
      table: names.nonces,
      key: Object.keys(dialect.ids.nonce({ scope: "", nonce: "" })),
      until,
      // A nonce lives through its last instant, so that it outlives the signature even by the coarsest clock.
      isExpired: (now) => fragment`${raw(until)} < ${now}`,
    });
    this.#server = server;
  }

  claim(claim: NonceClaim): Returned<Mode, "fresh" | "seen"> {
    return this.run(() => this.#claim(claim));
  }

  *#claim(claim: NonceClaim): Steps<"fresh" | "seen"> {
    this.gate.assertNonce(claim);
    const server = this.#server;
    for (let tried = 0; tried < mostTries; tried += 1) {
      const changed = yield* answerOf(
        server.change(this.name, (guard) => nonceStatement(server, claim, server.now(), guard)),
      );
      if (isNewNonce(changed)) return "fresh";
      const found = yield* answerOf(
        server.read(this.name, ownNonce(server, claim, fragment`, ${server.isAlone} AS is_alone`), 1),
      );
      if (found.length > 0) return isOwnNonce(found) ? "fresh" : "seen";
    }
    // Nothing was written, and nothing stands in the way.
    throw server.unwritten(this.name);
  }
}

type Nonces = Pick<SqlEngine, "dialect" | "names">;

/**
 * Adds a nonce, or takes over one that is over or the caller's own. Where the engine tells by itself what it has added, that one counts as
 * changed too, and a nonce of another caller does not; elsewhere each row that was there counts twice, whatever the connection counts.
 */
export function nonceStatement({ dialect, names }: Nonces, claim: NonceClaim, now: Sql, guard: Sql): Sql {
  const { until: column } = dialect;
  const id = dialect.ids.nonce(claim);
  const own = dialect.text(encodeText(claim.token));
  const until = dialect.after(now, claim.retainMs);
  const [storedToken, storedUntil] = [dialect.stored("token"), dialect.stored(column)];
  const [newToken, newUntil] = [dialect.proposed("token", own), dialect.proposed(column, until)];
  return fragment`${dialect.insert(names.nonces, [{ ...id, token: own, [column]: until }], guard)}
${dialect.onConflict({
  key: Object.keys(id),
  set: { token: newToken, [column]: fragment`${raw(dialect.greatest)}(${storedUntil}, ${newUntil})` },
  where: fragment`${storedToken} = ${newToken} OR ${storedUntil} < ${now}`,
  touched: column,
})}`;
}

/** By the number of rows that {@link nonceStatement} has changed. */
export function isNewNonce(changed: number): boolean {
  return changed === 1;
}

/** Reads whether a nonce that was there is the caller's own. `others`: further columns. */
export function ownNonce({ dialect, names }: Nonces, claim: NonceClaim, others: Sql = raw("")): Sql {
  const own = dialect.text(encodeText(claim.token));
  return fragment`SELECT token = ${own} AS is_own${others} FROM ${raw(names.nonces)} WHERE ${equal(dialect.ids.nonce(claim))}`;
}

/** Whether it is the caller's own. Libraries give a condition as 0 or 1, as a bigint or a boolean. */
export function isOwnNonce([row]: readonly Row[]): boolean {
  return row !== undefined && Number(row["is_own"]) === 1;
}
