import type { IdempotencyRecord } from "@countersign/idempotency";
import { encodeText, type FirstChange, type KeyChange, type Seen } from "@countersign/idempotency/store";
import { hasStandbys, isDurable, waitForStandbys } from "./durability.ts";
import type { ResolvedPostgresOptions } from "./options.ts";
import { removal } from "./pruning.ts";
import {
  clockOf,
  floorKey,
  isAlone,
  isReadyToInsert,
  microseconds,
  milliseconds,
  settings,
  timed,
  wholeMilliseconds,
} from "./statement-parts.ts";
import { quoteLiteral } from "./table-names.ts";

// A heartbeat must not wait for a transaction that has its row. It fails without harm: the next one comes soon.
const heartbeatLockTimeoutMs = 100;

/** Sent as text: named statements fail behind PgBouncer. */
export interface KeyStatement {
  readonly text: string;
  readonly values: unknown[];
}

/** Of rows over which a table decides nothing. A test's clock is the last parameter. */
export class KeyStatements {
  /** Returns one row: `is_alone`, and the key's row or nulls. params: key */
  readonly look: string;
  /** Removes a batch of rows that are over. The same commit keeps their highest fence in the floor. */
  readonly removeExpired: string;
  readonly #options: ResolvedPostgresOptions;
  readonly #add: string;

  constructor(options: ResolvedPostgresOptions) {
    const { idempotency } = options.names;
    const now = clockOf(options);
    this.#options = options;
    this.#add = addStatement(options);
    // `done` is an answer: who has written it may not know whether the standbys have it. Behind the first column, which it would change.
    this.look = `SELECT session.is_alone, ${columns(now(1))},
  CASE WHEN kept.state = 'done' AND ${hasStandbys} AND ${isDurable} THEN ${waitForStandbys} END AS message
FROM (SELECT ${isAlone} AS is_alone) AS session LEFT JOIN ${idempotency} AS kept ON kept.key = $1`;
    const isExpired = `state IN ('done', 'free') AND until_at <= (SELECT ${now(0)})`;
    this.removeExpired = `WITH removed AS (${removal(idempotency, isExpired, "state, fence")}),
raised AS (
  INSERT INTO ${idempotency} AS kept (key, state, token, fence, fingerprint, reason, recovery, until_at, version)
  SELECT ${floorKey}, 'free', '', max(fence), '', 'highest fence of a pruned key', 'hold', '9999-12-31 00:00:00+00', 1 FROM removed HAVING count(*) > 0
  ON CONFLICT (key) DO UPDATE SET fence = greatest(kept.fence, excluded.fence), version = kept.version + 1)
SELECT state FROM removed`;
  }

  /** Returns the `fence`; no row where the key is there, or in somebody's transaction. */
  add(storedKey: string, row: FirstChange): KeyStatement {
    const { state, token, fingerprint, reason, recovery, durationMs } = row;
    const texts = [token, fingerprint, reason].map(encodeText);
    const values = [storedKey, state, ...texts, recovery, durationMs];
    return { text: this.#add, values: timed(this.#options, values) };
  }

  /** Returns the `fence`; no row where the row is another one, or in somebody's transaction. */
  write(storedKey: string, change: KeyChange, seen: Seen): KeyStatement {
    const { lockTimeoutMs } = this.#options;
    const isHeartbeat = "states" in seen && change.state === "running";
    const waitMs = isHeartbeat ? Math.min(lockTimeoutMs, heartbeatLockTimeoutMs) : lockTimeoutMs;
    const { text, values } = this.#update([storedKey], change, seen, "FROM settings WHERE kept.key = $1");
    return { text: `WITH ${settings(waitMs)}\n${text}`, values };
  }

  /** For a transaction that has begun the key, or is about to. Returns the `fence`; no row where the row is another one. */
  writeWithin(storedKey: string, change: KeyChange, seen: Seen): KeyStatement {
    return this.#update([storedKey], change, seen, "WHERE kept.key = $1");
  }

  /** Returns the rows of the keys; the commit of a transaction that finds one `done` waits as that of `look`. params: the keys as an array in a text */
  lookAll(storedKeys: readonly string[]): KeyStatement {
    const { names } = this.#options;
    const text = `SELECT kept.key, ${columns(clockOf(this.#options)(1))},
  CASE WHEN kept.state = 'done' AND ${hasStandbys} THEN ${waitForStandbys} END AS message FROM ${names.idempotency} AS kept
WHERE kept.key = ANY ($1::text[])`;
    return { text, values: timed(this.#options, [arrayOf(storedKeys)]) };
  }

  /** params: `given`, a key first, and what the change has. */
  #update(given: readonly unknown[], change: KeyChange, seen: Seen, source: string): KeyStatement {
    const { state, reason, durationMs, token, fingerprint, recovery, decision } = change;
    const values = [...given];
    const parameter = (value: unknown): string => `$${values.push(value)}`;
    const set = [
      "version = kept.version + 1",
      `state = ${parameter(state)}`,
      `reason = ${parameter(encodeText(reason))}`,
    ];
    if (token !== undefined) set.push(`token = ${parameter(encodeText(token))}`);
    if (fingerprint !== undefined) set.push(`fingerprint = ${parameter(encodeText(fingerprint))}`);
    if (recovery !== undefined) set.push(`recovery = ${parameter(recovery)}`);
    if (decision !== undefined) {
      set.push(`decision = ${parameter(decision === null ? null : JSON.stringify(decision))}`);
    }
    const duration = milliseconds(parameter(durationMs));
    const isToken = `kept.token = ${parameter(encodeText(seen.token))}`;
    // States are literals: a partial index serves no parameter.
    const isSeen =
      "version" in seen
        ? `kept.version = ${parameter(seen.version)}`
        : `kept.state IN (${seen.states.map(quoteLiteral).join(", ")})`;
    const now = clockOf(this.#options)(values.length);
    set.push(`until_at = ${now} + ${duration}`);
    if (change.raisesFence === true) set.push(`fence = greatest(kept.fence + 1, ${microseconds(now)})`);
    return {
      text: `UPDATE ${this.#options.names.idempotency} AS kept SET ${set.join(", ")}
${source} AND ${isToken} AND ${isSeen} RETURNING kept.fence`,
      values: timed(this.#options, values),
    };
  }
}

/** A page after key $1, of $2 rows, in key order: no key changes pages. The state is a literal: a partial index serves no parameter. */
export function pageStatement(options: ResolvedPostgresOptions, state: IdempotencyRecord["state"]): string {
  const now = clockOf(options)(2);
  const live = state === "done" ? ` AND kept.until_at > (SELECT ${now})` : "";
  return `SELECT kept.key, ${columns(now)} FROM ${options.names.idempotency} AS kept
WHERE kept.state = '${state}'${live} AND kept.key > $1 ORDER BY kept.key LIMIT $2`;
}

/** What `rowOf` reads. The remaining seconds are a text: some libraries give a numeric as an object of their own. */
function columns(now: string): string {
  return `kept.state, kept.token, kept.fence, kept.version, kept.fingerprint, kept.reason, kept.recovery, kept.decision,
  extract(epoch FROM kept.until_at - ${now})::text AS remaining_seconds, ${wholeMilliseconds(now)} AS now_ms`;
}

/**
 * params: key, state, token, fingerprint, reason, recovery, duration. It looks first, so that a duplicate writes nothing. The fence is the time, and
 * above all that was pruned, in case the clock was set back. A pruning that commits meanwhile is not seen, but then the key still seems to
 * be there.
 */
function addStatement(options: ResolvedPostgresOptions): string {
  const { names, lockTimeoutMs } = options;
  const { idempotency } = names;
  const now = clockOf(options)(7);
  const floor = `(SELECT pruned.fence + 1 FROM ${idempotency} AS pruned WHERE pruned.key = ${floorKey})`;
  return `INSERT INTO ${idempotency} AS kept (key, state, token, fence, fingerprint, reason, recovery, until_at, version)
SELECT $1, $2, $3, greatest(${microseconds(now)}, ${floor}), $4, $5, $6, ${now} + ${milliseconds("$7")}, 1
WHERE NOT EXISTS (SELECT FROM ${idempotency} AS seen WHERE seen.key = $1) AND ${isReadyToInsert(lockTimeoutMs)}
ON CONFLICT (key) DO NOTHING RETURNING kept.fence`;
}

/** As PostgreSQL writes an array: libraries read arrays of JavaScript in ways of their own. */
function arrayOf(texts: readonly string[]): string {
  return `{${texts.map((text) => `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`).join(",")}}`;
}
