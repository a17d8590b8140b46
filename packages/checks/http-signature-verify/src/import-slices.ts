import { isUtf8 } from "node:buffer";
import { types } from "node:util";
import { workSlices } from "@countersign/core/door";
import { type ImportedKeys, importKeys, type VerificationKey } from "@countersign/http-message-signatures";

type Bounds = NonNullable<Parameters<typeof importKeys>[1]>;
type Fault = ImportedKeys["faults"][number];

/** As {@link importKeys}, key by key: each takes over a millisecond, and requests wait. */
export async function importInSlices(document: unknown, bounds: Bounds): Promise<ImportedKeys> {
  const { maxKeys = 0 } = bounds;
  const parts = partsOf(document);
  if (parts.length < 2 || parts.length > maxKeys) return importKeys(document, bounds);
  const keys = new Map<string, VerificationKey>();
  const faults: Fault[] = [];
  const seen = new Set<string>();
  for (const part of parts) {
    // oxlint-disable-next-line no-await-in-loop -- yields to the event loop
    while (workSlices.over) await workSlices.next();
    const one = importKeys(part, bounds);
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

/** A document for each key of a JWK Set or record, or of its text; none of another document. */
function partsOf(document: unknown): readonly unknown[] {
  const value = types.isUint8Array(document) && isUtf8(document) ? parsed(document) : document;
  if (typeof value !== "object" || value === null || Array.isArray(value) || "kty" in value) return [];
  if ("keys" in value) return Array.isArray(value.keys) ? value.keys.map((key) => ({ keys: [key] })) : [];
  return Object.entries(value).map(([keyid, key]) => ({ [keyid]: key }));
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch {
    // Another form of key, or none.
    return undefined;
  }
}
