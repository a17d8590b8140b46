import { damagedCursor, decodeText } from "@countersign/idempotency/store";
import type { KeyParts } from "../sql/key-parts.ts";
import { bound, raw } from "../sql/sql.ts";
import { isOneOf } from "../sql/statements.ts";
import { isAlone } from "./statement-parts.ts";
import type { TableNames } from "./table-names.ts";
import { digestOf, storedText } from "./values.ts";

const none = raw("");
const digest = "LOWER(HEX(kept.digest)) AS `key`";

/** What MySQL and MariaDB have of their own in the statements of keys. Rows are found by a digest; no INSERT gives a fence back. */
export function keyParts({ schema }: TableNames): KeyParts {
  return {
    session: {
      columns: raw(`session.highest_fence, ${isAlone} AS is_alone`),
      from: raw(`${schema} AS session`),
      where: raw("session.id = 1"),
    },
    floor: undefined,
    looksFirst: true,
    confirming: { alone: none, within: none },
    byKey: raw(" FORCE INDEX (PRIMARY)"),
    locking: raw(" FOR UPDATE"),
    isIn: (state) => raw(`kept.state = '${state}'`),
    key: raw(digest),
    listed: raw(`${digest}, kept.name`),
    order: raw("kept.digest"),
    pageAfter(store, before) {
      if (before !== "" && !/^[0-9a-f]{64}$/.test(before)) throw damagedCursor(store);
      return bound(Buffer.from(before, "hex"));
    },
    keyOf: (row) => decodeText(storedText(row["name"])),
    areOf: (keys) =>
      isOneOf(
        raw("kept.digest"),
        keys.map((key) => bound(digestOf(key))),
      ),
    keyText: (key) => digestOf(key).toString("hex"),
  };
}
