import type { ReleasedKey } from "@countersign/idempotency";
import { exitCodes } from "../command-io.ts";
import { isDecided, type KnownRecord } from "./decision-report.ts";
import { readAny } from "./find-key.ts";
import { shownKey } from "./key-text.ts";
import type { Entry } from "./operator-entry.ts";
import type { OperatorStore } from "./store.ts";
import { StoreFailure } from "./store-failure.ts";

/** A decision that is to be taken back. */
interface Reopening {
  readonly key: string;
  /** What the decision was about; undefined: the one that stands. */
  readonly fence: number | undefined;
  readonly entry: Entry;
  /** The store as it is named in messages. */
  readonly store: string;
}

/** A record with a decision. */
type DecidedRecord = KnownRecord & Pick<ReleasedKey, "decision">;

type Store = Pick<OperatorStore["idempotency"], "read" | "readReleased" | "reopen">;

/**
 * Takes the decision about a key back, and returns its record as it was and as it is. Throws a StoreFailure, and changes nothing, when
 * there is no decision, or when something ran on it.
 */
export async function reopenKey(
  store: Store,
  { key, fence, entry, store: shownStore }: Reopening,
): Promise<{ readonly was: DecidedRecord; readonly now: KnownRecord }> {
  const fail = (why: string): StoreFailure =>
    new StoreFailure(`${shownKey(key)}: ${why}; nothing was changed`, exitCodes.otherwise);
  const was = await readAny(store, key);
  if (was === undefined) throw fail(`unknown in ${shownStore}`);
  if (!hasDecision(was)) throw fail(whyNot(was));
  if (fence !== undefined && fence !== was.fence)
    throw fail(`it is at fence ${was.fence} now, look at it again`);
  const answer = await store.reopen(key, { fence: was.fence, ...entry });
  const now = await readAny(store, key);
  if (answer !== "ok" || now === undefined) throw fail("it has changed since it was read, look at it again");
  return { was, now };
}

function hasDecision(record: KnownRecord): record is DecidedRecord {
  return isDecided(record);
}

function whyNot({ state, decision }: KnownRecord): string {
  if (state === "held") return "held already, it waits for a decision";
  if (state === "run") return "an attempt has the key, nothing can be taken back";
  const when = decision === undefined ? "" : " behind the decision";
  return state === "done" ? `an attempt has done it itself${when}` : `an attempt has had it${when}`;
}
