import { isUtf8 } from "node:buffer";
import { types } from "node:util";
import { workSlices } from "@countersign/core/door";
import { type ImportedKeys, importKeys, type VerificationKey } from "@countersign/http-message-signatures";

type Bounds = NonNullable<Parameters<typeof importKeys>[1]>;
type Fault = ImportedKeys["faults"][number];

/** As {@link importKeys}, a JWK Set key by key: each takes over a millisecond, and requests wait. */
export async function importInSlices(document: unknown, bounds: Bounds): Promise<ImportedKeys> {
  const { maxKeys = 0 } = bounds;
  const set = keysOf(document);
  if (set === undefined || set.length > maxKeys) return importKeys(document, bounds);
  const keys = new Map<string, VerificationKey>();
  const faults: Fault[] = [];
  const seen = new Set<string>();
  for (const jwk of set) {
    // oxlint-disable-next-line no-await-in-loop -- yields to the event loop
    while (workSlices.over) await workSlices.next();
    const one = importKeys({ keys: [jwk] }, bounds);
    const [key] = one.keys.values();
    const keyid = key?.keyid ?? one.faults[0]?.keyid;
    if (keyid !== undefined && seen.has(keyid)) {
      keys.delete(keyid);
      faults.push({ keyid, error: new TypeError("the keyid stands there twice") });
      continue;
    }
    if (keyid !== undefined) seen.add(keyid);
    if (key !== undefined) keys.set(key.keyid, key);
    faults.push(...one.faults);
  }
  return { keys, faults };
}

/** The keys of a JWK Set, or of its text; undefined for any other document. */
function keysOf(document: unknown): readonly unknown[] | undefined {
  const value = types.isUint8Array(document) && isUtf8(document) ? parsed(document) : document;
  if (typeof value !== "object" || value === null || "kty" in value || !("keys" in value)) return undefined;
  return Array.isArray(value.keys) ? value.keys : undefined;
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch {
    // Another form of key, or none.
    return undefined;
  }
}
