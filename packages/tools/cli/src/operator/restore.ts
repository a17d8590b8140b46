import { CommandError, exitCodes } from "../command-io.ts";
import type { Entry } from "./decide.ts";
import { shownKey } from "./key-text.ts";
import { readAny } from "./records.ts";
import type { KnownRecord, OperatorStore } from "./store.ts";

export const restoredReason = "restored: paid before the restore";

// Not random: a command that is run again goes on with what one before left. Who resolves or reopens the key takes it away.
const token = "countersign keys restore";
// The payload that was paid is unknown. No digest looks like this.
const fingerprint = "restored";
const leaseMs = 30_000;

/** The key as it is now, and whether this call made it done. Leaves a key that the store knows as it is. */
export async function restoreKey(
  store: OperatorStore["idempotency"],
  key: string,
  entry: Entry,
): Promise<{ readonly restored: boolean; readonly record: KnownRecord }> {
  const restored = await enter(store, key, entry);
  const record = await readAny(store, key);
  if (record !== undefined) return { restored, record };
  throw new CommandError(`${shownKey(key)}: has changed meanwhile, look at it again`, exitCodes.otherwise);
}

async function enter(store: OperatorStore["idempotency"], key: string, entry: Entry): Promise<boolean> {
  const known = await readAny(store, key);
  if (known?.state === "free" ? known.fingerprint === fingerprint : known && known.token !== token)
    return false;
  if (known?.state !== "held") {
    const { status } = await store.claim(key, { token, fingerprint, leaseMs, recovery: "hold" });
    if (status === "acquired") await store.hold(key, token, restoredReason);
  }
  const held = await store.read(key);
  if (held?.state !== "held" || held.token !== token) return false;
  return (await store.resolve(key, "done", { fence: held.fence, ...entry })) === "ok";
}
