import { decodeText, encodeText } from "@countersign/idempotency/store";
import type { KeyParts } from "../sql/key-parts.ts";
import { bound, raw } from "../sql/sql.ts";
import { isOneOf } from "../sql/statements.ts";
import type { tableNames } from "./schema.ts";

const none = raw("");

/** What SQLite has of its own in the statements of keys. */
export function keyParts({ schema }: ReturnType<typeof tableNames>): KeyParts {
  return {
    session: {
      columns: raw("session.is_alone"),
      from: raw("(SELECT 1 AS is_alone) AS session"),
      where: raw("1 = 1"),
    },
    floor: raw(`(SELECT fence_floor + 1 FROM ${schema} WHERE id = 1)`),
    // Most claims of a busy key are duplicates of a paid one: they read, and never queue for the write lock.
    looksFirst: true,
    confirming: { alone: none, within: none },
    byKey: none,
    locking: none,
    // SQLite uses a partial index only where the query repeats its terms.
    isIn: (state) =>
      raw(
        state === "done"
          ? "kept.state = 'done'"
          : `kept.state IN ('running', 'held') AND kept.state = '${state}'`,
      ),
    key: raw("kept.key"),
    listed: raw("kept.key"),
    order: raw("kept.key"),
    pageAfter: (_store, before) => bound(before),
    keyOf: (row) => decodeText(String(row["key"])),
    areOf: (keys) =>
      isOneOf(
        raw("kept.key"),
        keys.map((key) => bound(encodeText(key))),
      ),
    keyText: encodeText,
  };
}
