import type { IdempotencyRecord, SqlValue, TransactionKey } from "@countersign/idempotency";
import type { FirstChange, KeyChange, NewRow, Seen } from "@countersign/idempotency/store";
import type { ResolvedMysqlOptions } from "./options.ts";
import {
  isAlone,
  microseconds,
  runVariable,
  waitingFor,
  zeroIfAlone,
  zeroOnSession,
  type Statement,
} from "./statement-parts.ts";
import { bytesOf, digestOf } from "./values.ts";

// MariaDB's shortest. A heartbeat must not wait for a transaction that has its row: the next one comes soon.
const heartbeatLockTimeoutMs = 1_000;

interface KeyStep {
  readonly change: KeyChange;
  readonly seen: Seen;
  /** Of the row after the change. */
  readonly fence: number;
}

/**
 * Of rows over which a table decides nothing, in words that MySQL knows too. No session's sql_mode changes what they do: no text is too long
 * for its column, and no assignment reads what another one has assigned.
 */
export class KeyStatements {
  /** values: the fence */
  readonly remember: string;
  readonly #options: ResolvedMysqlOptions<unknown>;
  readonly #now: () => string;

  constructor(options: ResolvedMysqlOptions<unknown>, now: () => string) {
    this.#options = options;
    this.#now = now;
    this.remember = `UPDATE ${options.names.schema} SET highest_fence = GREATEST(highest_fence, ?) WHERE id = 1`;
  }

  /** Gives one row: `is_alone`, the `highest_fence` of a pruned key, and the key's row or nulls. */
  look(key: string): Statement {
    const { schema, idempotency } = this.#options.names;
    const text = `SELECT kept.highest_fence, ${isAlone}, ${columns(this.#now())} FROM ${schema} AS kept
LEFT JOIN ${idempotency} AS seen ON seen.digest = ? WHERE kept.id = 1`;
    return [text, [digestOf(key)]];
  }

  /** Gives the key's row, locked, so that nothing is found which may still be rolled back. */
  lookLocked(key: string): Statement {
    const { names, lockTimeoutMs } = this.#options;
    const text = `${waitingFor(lockTimeoutMs)}SELECT ${isAlone}, ${columns(this.#now())} FROM ${names.idempotency} AS seen
WHERE seen.digest = ? LOCK IN SHARE MODE`;
    return [text, [digestOf(key)]];
  }

  /** Fails where the key has a row. */
  add(key: string, row: FirstChange, fence: number): Statement {
    const { names, lockTimeoutMs } = this.#options;
    const text = `${waitingFor(lockTimeoutMs)}INSERT INTO ${names.idempotency} (digest, name, state, token, fence, fingerprint, reason, recovery, until_us, version)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ${this.#now()} + ${microseconds("?")}, 1 + ${zeroIfAlone})`;
    const { state, token, fingerprint, reason, recovery, durationMs } = row;
    const values = [bytesOf(token), fence, bytesOf(fingerprint), bytesOf(reason), recovery, durationMs];
    return [text, [digestOf(key), bytesOf(key), state, ...values]];
  }

  /** Changes one row, or none where the row is another one. */
  write(key: string, step: KeyStep): Statement {
    const { lockTimeoutMs } = this.#options;
    const isHeartbeat = "states" in step.seen && step.change.state === "running";
    const waitMs = isHeartbeat ? Math.min(lockTimeoutMs, heartbeatLockTimeoutMs) : lockTimeoutMs;
    const [text, values] = this.#update(key, step, `version + 1 + ${zeroIfAlone}`);
    return [`${waitingFor(waitMs)}${text}`, values];
  }

  /**
   * Changes the version of a done row alone, and so proves that it has committed: an open transaction would keep the row locked. For MySQL,
   * where no SELECT tells whether it reads what its own session has not committed yet.
   */
  confirmDone(key: string, token: string): Statement {
    const { idempotency } = this.#options.names;
    const text = `UPDATE ${idempotency} SET version = version + 1 WHERE state = 'done' AND digest = ? AND token = ?`;
    return [text, [digestOf(key), bytesOf(token)]];
  }

  /**
   * In a transaction on the session of this run: adds the first rows of the keys that have none, in this order, and locks those of the others.
   * Not INSERT IGNORE: it locks what it finds for reading, and of two that then write both wait for each other. A row that it finds
   * counts twice: its version changes.
   */
  addAll(rows: readonly NewRow[], run: Uint8Array): Statement {
    const now = this.#now();
    // No owner is told of the fence: one of lease mode gets its own above this row's, and above all that were pruned.
    const row = `(?, ?, ?, ?, ${now}, ?, ?, ?, ${now} + ${microseconds("?")}, 1`;
    const [first = "", ...others] = rows.map(
      (_row, index) => `${row}${index === 0 ? ` + ${zeroOnSession}` : ""})`,
    );
    const values = rows.flatMap(
      ({ key, row: { state, token, fingerprint, reason, recovery, durationMs } }, index) => {
        const id = [digestOf(key), bytesOf(key), state, bytesOf(token)];
        const last = index === 0 ? [durationMs, run] : [durationMs];
        return [...id, bytesOf(fingerprint), bytesOf(reason), recovery, ...last];
      },
    );
    const text = `INSERT INTO ${this.#options.names.idempotency} (digest, name, state, token, fence, fingerprint, reason, recovery, until_us, version)
VALUES ${[first, ...others].join(",\n  ")}
ON DUPLICATE KEY UPDATE version = version + 1`;
    return [text, values];
  }

  /** In a transaction: gives the rows of the keys, locked, so that nothing is found which is older than its wait. */
  lookAll(keys: readonly string[]): Statement {
    const text = `SELECT LOWER(HEX(seen.digest)) AS \`key\`, ${columns(this.#now())} FROM ${this.#options.names.idempotency} AS seen FORCE INDEX (PRIMARY)
WHERE seen.digest IN (${keys.map(() => "?").join(", ")}) FOR UPDATE`;
    return [text, keys.map((key) => digestOf(key))];
  }

  /** In a transaction that has begun the key, or is about to. */
  writeWithin(key: string, step: KeyStep): Statement {
    return this.#update(key, step, "version + 1");
  }

  /** Makes the keys done that a transaction has begun, on the session of this run. */
  doneAll(keys: readonly TransactionKey[], run: Uint8Array): Statement {
    const { retentionMs } = this.#options;
    const done = `state = 'done', reason = '', until_us = ${this.#now()} + ${microseconds(retentionMs)}`;
    return this.#own(keys, `version = version + 1, ${done}`, run);
  }

  /** Changes nothing but the version of such keys: as many rows as there are keys while their transaction is the session's. */
  touchAll(keys: readonly TransactionKey[], run: Uint8Array): Statement {
    return this.#own(keys, "version = version + 1", run);
  }

  #own(keys: readonly TransactionKey[], changes: string, run: Uint8Array): Statement {
    const [isOwn, values] = ownedBy(keys);
    const text = `UPDATE ${this.#options.names.idempotency} FORCE INDEX (PRIMARY) SET ${changes}
WHERE ${isOwn} AND state = 'running' AND ${runVariable} = ?`;
    return [text, [...values, run]];
  }

  /** The condition that all these keys are done in what the session sees, with what triggers have made of them. */
  areDone(keys: readonly TransactionKey[]): Statement {
    const [isOwn, values] = ownedBy(keys);
    const { idempotency } = this.#options.names;
    const text = `(SELECT COUNT(*) FROM ${idempotency} FORCE INDEX (PRIMARY) WHERE ${isOwn} AND state = 'done') = ${keys.length}`;
    return [text, values];
  }

  /** A page after the first value, a digest, of as many rows as the second says, by digest: no key changes pages. */
  page(state: IdempotencyRecord["state"]): string {
    const now = this.#now();
    const live = state === "done" ? ` AND seen.until_us > ${now}` : "";
    return `SELECT LOWER(HEX(seen.digest)) AS \`key\`, seen.name, ${columns(now)} FROM ${this.#options.names.idempotency} AS seen
WHERE seen.state = '${state}'${live} AND seen.digest > ? ORDER BY seen.digest LIMIT ?`;
  }

  /** The version always changes: a row that was found counts, whether the connection counts what it finds or what it changes. */
  #update(key: string, { change, seen, fence }: KeyStep, version: string): Statement {
    const { state, reason, durationMs, token, fingerprint, recovery, decision, raisesFence } = change;
    const changes: [assignment: string, value: SqlValue][] = [
      ["state = ?", state],
      ["reason = ?", bytesOf(reason)],
      [`until_us = ${this.#now()} + ${microseconds("?")}`, durationMs],
    ];
    if (token !== undefined) changes.push(["token = ?", bytesOf(token)]);
    if (fingerprint !== undefined) changes.push(["fingerprint = ?", bytesOf(fingerprint)]);
    if (recovery !== undefined) changes.push(["recovery = ?", recovery]);
    if (decision !== undefined) changes.push(["decision = ?", jsonOf(decision)]);
    if (raisesFence === true) changes.push(["fence = GREATEST(fence + 1, ?)", fence]);
    const [isSeen, seenValues] = asSeen(seen);
    // By the primary key: an index of the states would lock it after its entry, and others lock it before.
    const text = `UPDATE ${this.#options.names.idempotency} FORCE INDEX (PRIMARY)
SET version = ${version}, ${changes.map(([assignment]) => assignment).join(", ")}
WHERE digest = ? AND token = ? AND ${isSeen}`;
    const values = changes.map(([, value]) => value);
    return [text, [...values, digestOf(key), bytesOf(seen.token), ...seenValues]];
  }
}

/** Each run of a key has a token of its own. */
function ownedBy(keys: readonly TransactionKey[]): Statement {
  const places = keys.map(() => "?").join(", ");
  const values = [...keys.map(({ key }) => digestOf(key)), ...keys.map(({ token }) => bytesOf(token))];
  return [`digest IN (${places}) AND token IN (${places})`, values];
}

/** The condition that the row's version or state is the seen one. */
function asSeen(seen: Seen): Statement {
  if ("version" in seen) return ["version = ?", [seen.version]];
  return [`state IN (${seen.states.map(() => "?").join(", ")})`, seen.states];
}

function jsonOf(decision: KeyChange["decision"]): Buffer | null {
  return decision === null ? null : Buffer.from(JSON.stringify(decision), "utf8");
}

/** What `rowOf` reads. What is left is rounded up: of a live lease never to 0. */
function columns(now: string): string {
  const names = ["state", "token", "fence", "version", "fingerprint", "reason", "recovery", "decision"];
  const left = `CEILING((seen.until_us - ${now}) / 1000) AS remaining_ms`;
  return [...names.map((name) => `seen.${name}`), left, `${now} AS now_us`].join(", ");
}
