import type { Column, Table } from "../sql/tables.ts";

/** What an engine has of its own in the tables of keys, nonces and responses. */
export interface KeyTableForm {
  /** The columns by which rows are found. A key of one column has its constraint. */
  readonly ids: {
    readonly idempotency: readonly Column[];
    readonly nonces: readonly Column[];
    readonly answers: readonly Column[];
  };
  /** The primary key of nonces, where it has several columns. */
  readonly nonceKey?: string;
  /** The column with the end of a lease or a retention. */
  readonly until: string;
  /** The column by which pages of keys are ordered. */
  readonly order: string;
  /** The names of indexes. */
  readonly suffixes: { readonly until: string; readonly open: string };
}

/** The tables of keys, nonces and responses. */
export function keyTables({
  ids,
  nonceKey,
  until,
  order,
  suffixes,
}: KeyTableForm): Readonly<Record<keyof KeyTableForm["ids"], Table>> {
  return {
    idempotency: {
      what: "A row for each idempotency key.",
      columns: [
        ...ids.idempotency,
        [
          "state",
          "keyState",
          "NOT NULL",
          "free: released, kept for a day for its fence, or for as long as a done one for what an operator has decided",
        ],
        ["token", "text", "NOT NULL"],
        ["fence", "bigint", "NOT NULL"],
        ["fingerprint", "text", "NOT NULL"],
        ["reason", "text", "NOT NULL"],
        [
          "recovery",
          "recovery",
          "NOT NULL",
          "what may follow once the lease has ended: rerun, if the next claim says so too",
        ],
        [
          until,
          "instant",
          "NOT NULL",
          "end of the lease (running, held) or of what is remembered (done, free)",
        ],
        ["version", "bigint", "NOT NULL", "raised by every write"],
        [
          "decision",
          "body",
          "",
          "an operator's last decision, in JSON: the outcome, about which fence, when, by whom, why, and for what the key was held",
        ],
      ],
      indexes: [
        { suffix: suffixes.until, columns: until, where: "state IN ('done', 'free')" },
        // For operators: the few keys that are not settled, among all that are.
        { suffix: suffixes.open, columns: `state, ${order}`, where: "state IN ('running', 'held')" },
      ],
    },
    nonces: {
      what: "A row for each nonce that was seen.",
      columns: [...ids.nonces, ["token", "text", "NOT NULL"], [until, "instant", "NOT NULL"]],
      key: nonceKey,
      indexes: [{ suffix: suffixes.until, columns: until }],
    },
    answers: {
      what: "A row for each response of a done key.",
      columns: [...ids.answers, ["answer", "bytes", "NOT NULL"], [until, "instant", "NOT NULL"]],
      indexes: [{ suffix: suffixes.until, columns: until }],
    },
  };
}

/** Of a response: of the attempt's token, not of the key. What never ended its key is never found. */
export const ofAttempt = "of the attempt's token, not of the key: what never ended its key is never found";
