import { OptionError } from "@countersign/core";
import type { OptionOwner } from "@countersign/core/internal";

const keysOfCallers = new WeakSet();

/** Notes that a key function holds the authenticated caller: two callers never have one key. */
export function markCallersApart(key: object): void {
  keysOfCallers.add(key);
}

/** Throws an OptionError where another caller could get a kept answer, and nobody has said that callers may share answers. */
export function assertCallers(
  owner: OptionOwner,
  replay: { readonly callers: "apart" | "shared" | undefined } | undefined,
  key: object,
): void {
  if (replay === undefined) return;
  const isApart = keysOfCallers.has(key);
  if (isApart ? replay.callers !== "shared" : replay.callers !== undefined) return;
  const what = isApart
    ? 'must not be "shared" beside idempotencyKeyHeader({ caller }), which tells callers apart'
    : "is required, since whoever sends the key and payload of another caller would get that caller's answer: give " +
      'idempotencyKeyHeader() the option caller; or write "apart" where the option key holds the authenticated caller, "shared" where ' +
      "all callers may get each answer";
  throw new OptionError(owner, { option: "replay.callers", what });
}
