// Runs vectors by the built packages. Plain JavaScript, so that every runtime reads it.
import { readdirSync, readFileSync } from "node:fs";
import { verifyContentDigest } from "@countersign/content-digest";
import {
  createSignatureBase,
  importVerificationKey,
  parseSignatureInput,
  verifySignatures,
} from "@countersign/http-message-signatures";

const folder = new URL(".", import.meta.url);

export function readVectors() {
  const names = readdirSync(folder).filter((name) => name.endsWith(".json"));
  const files = names.map((name) => [name, JSON.parse(readFileSync(new URL(name, folder), "utf8"))]);
  return new Map(files.filter(([, file]) => file.vectors !== undefined));
}

/** What of a vector does not come out as expected; empty when all does. */
export function faultsOf({ time, keys, policies, need, message, expected }, engine) {
  const received = toMessage(message);
  const faults = [];
  const { verdict, code, labels } = verdictOf({
    received,
    time,
    keys,
    policies,
    need,
    body: message.body,
    engine,
  });
  const found = [verdict, code, ...(labels ?? [])].join(" ");
  const wanted = [expected.verdict, expected.code, ...(expected.labels ?? [])].join(" ");
  if (found !== wanted) faults.push(`expected ${wanted}, found ${found}`);
  for (const [label, base] of Object.entries(expected.bases ?? {})) {
    const computed = baseOf({
      message: received,
      headers: message.headers,
      label,
      fieldTypes: policies[0].fieldTypes,
    });
    if (computed !== base) faults.push(`expected the base\n${base}\nfound\n${computed}`);
  }
  return faults;
}

function verdictOf({ received, time, keys, policies, need, body, engine }) {
  const refused = (code) => ({ verdict: "refused", code });
  let imported;
  try {
    imported = new Map(keys.map((key) => [key.keyid, importKey(key)]));
  } catch (error) {
    if (error instanceof TypeError) return refused("key-refused");
    throw error;
  }
  const options = { keys: (keyid) => imported.get(keyid), now: time, engine };
  try {
    const verified = verifySignatures(
      received,
      policies.map((policy) => ({ ...policy, ...options })),
      need,
    );
    if (body !== undefined) verifyContentDigest(received, Buffer.from(body, "base64"), { required: true });
    return { verdict: "valid", labels: verified.map(({ label }) => label) };
  } catch (error) {
    if (typeof error.code === "string" && /^(?:MessageSignature|Guard)Error$/.test(error.name))
      return refused(error.code);
    throw error;
  }
}

/** The key of a vector; a secret is given as its bytes. Throws a TypeError for one that is refused. */
export function importKey({ keyid, algorithm, jwk, ...validity }) {
  const key = algorithm === "hmac-sha256" && jwk.kty === "oct" ? Buffer.from(jwk.k, "base64url") : jwk;
  return importVerificationKey(keyid, key, { alg: algorithm, ...validity });
}

function baseOf({ message, headers, label, fieldTypes }) {
  const lines = headers
    .filter(([name]) => name.toLowerCase() === "signature-input")
    .map(([, value]) => value.replace(/^[ \t]+|[ \t]+$/g, ""));
  try {
    const input = parseSignatureInput(lines.join(", ")).get(label);
    return createSignatureBase(message, input, fieldTypes);
  } catch (error) {
    return `no base: ${error.message}`;
  }
}

function toMessage({ headers, trailers, body: _body, request, ...rest }) {
  return {
    ...rest,
    rawHeaders: headers.flat(),
    ...(trailers === undefined ? {} : { rawTrailers: trailers.flat() }),
    ...(request === undefined ? {} : { request: toMessage(request) }),
  };
}
