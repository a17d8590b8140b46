import type { KeyParts } from "../sql/key-parts.ts";
import { bound, fragment, raw } from "../sql/sql.ts";
import { hasStandbys, isDurable, waitForStandbys } from "./durability.ts";
import { floorKey, isAlone } from "./statement-parts.ts";
import { decodeKey, encodeKey } from "./stored-key.ts";
import { quoteLiteral, type TableNames } from "./table-names.ts";

/** What PostgreSQL has of its own in the statements of keys. */
export function keyParts({ idempotency }: TableNames): KeyParts {
  return {
    session: {
      columns: raw("session.is_alone"),
      from: raw(`(SELECT ${isAlone} AS is_alone) AS session`),
      where: raw("true"),
    },
    // A pruning that commits meanwhile is not seen, but then the key still seems to be there.
    floor: raw(`(SELECT pruned.fence + 1 FROM ${idempotency} AS pruned WHERE pruned.key = ${floorKey})`),
    looksFirst: false,
    // `done` is an answer: who has written it may not know whether the standbys have it. Behind `is_alone`, which it would change.
    confirming: {
      alone: raw(
        `,\n  CASE WHEN kept.state = 'done' AND ${hasStandbys} AND ${isDurable} THEN ${waitForStandbys} END AS message`,
      ),
      within: raw(
        `,\n  CASE WHEN kept.state = 'done' AND ${hasStandbys} THEN ${waitForStandbys} END AS message`,
      ),
    },
    byKey: raw(""),
    locking: raw(""),
    // A literal: a partial index serves no parameter.
    isIn: (state) => raw(`kept.state = ${quoteLiteral(state)}`),
    key: raw("kept.key"),
    listed: raw("kept.key"),
    order: raw("kept.key"),
    pageAfter: (_store, before) => fragment`${bound(before)}::text`,
    keyOf: (row) => decodeKey(String(row["key"])),
    // One parameter: a named statement is the same for any number of keys.
    areOf: (keys) => fragment`kept.key = ANY (${bound(arrayOf(keys.map(encodeKey)))}::text[])`,
    keyText: encodeKey,
  };
}

/** As PostgreSQL writes an array: libraries read arrays of JavaScript in ways of their own. */
function arrayOf(texts: readonly string[]): string {
  return `{${texts.map((text) => `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`).join(",")}}`;
}
