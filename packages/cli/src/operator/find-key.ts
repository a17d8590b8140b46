import { exitCodes } from "../command-io.ts";
import { keyAsJson, shownKey } from "./key-text.ts";
import type { KnownRecord } from "./decision-report.ts";
import { isUndecided } from "./keys-report.ts";
import { listUndecided } from "./list-keys.ts";
import type { OperatorStore } from "./store.ts";
import { StoreFailure } from "./store-failure.ts";

// As the guard's option `scope` has it: no scope holds a colon, so what follows the first one is the caller's key.
const scopeForm = /^[a-z0-9][a-z0-9_-]{0,31}$/;
const defaultScope = "payout";
const longestKey = 512;

/**
 * The key in the store that an operator means: the one that was given, or the one that a guard has made of the caller's
 * idempotency key by putting its scope before it. Among several it takes none: a StoreFailure lists them.
 */
export async function findKey(
  { idempotency, canList = true }: Pick<OperatorStore, "idempotency" | "canList">,
  given: string,
): Promise<string> {
  const usual = `${defaultScope}:${given}`;
  const usualRecord = usual.length <= longestKey ? await readAny(idempotency, usual) : undefined;
  if ((await readAny(idempotency, given)) !== undefined) {
    // Of two that somebody may mean, the other one waits as well.
    if (usualRecord !== undefined && isUndecided(usualRecord)) throw ambiguous(given, [given, usual]);
    return given;
  }
  const candidates = new Set(usualRecord === undefined ? [] : [usual]);
  if (canList) await addWaiting(candidates, idempotency, given);
  if (candidates.size > 1) throw ambiguous(given, [...candidates]);
  const [only = given] = candidates;
  return only;
}

/** What the store knows of a key, also of one that an operator has released. */
export async function readAny(
  store: Pick<OperatorStore["idempotency"], "read" | "readReleased">,
  key: string,
): Promise<KnownRecord | undefined> {
  return (await store.read(key)) ?? (await store.readReleased(key));
}

async function addWaiting(
  candidates: Set<string>,
  store: Pick<OperatorStore["idempotency"], "list">,
  given: string,
): Promise<void> {
  await listUndecided(store, ({ key }) => {
    if (key.endsWith(`:${given}`) && scopeForm.test(key.slice(0, -given.length - 1))) candidates.add(key);
  });
}

function ambiguous(given: string, candidates: readonly string[]): StoreFailure {
  const listed = candidates.map((key) => `--key-json '${keyAsJson(key)}'`).join(" or ");
  return new StoreFailure(
    `${shownKey(given)} may be one of ${candidates.length} keys: give ${listed}; nothing was changed`,
    exitCodes.otherwise,
  );
}
