// verifyContentDigest: the lines of Content-Digest, one a line of the input, accepted only when each known digest is the body's.
import { createHash } from "node:crypto";
import { verifyContentDigest } from "@countersign/content-digest";
import { isGuardError } from "@countersign/core";
import { assertProperty, assertSame, attempt, words } from "../property.mjs";
import { decodeBase64 } from "../reference/base64.mjs";

const body = Buffer.from('{"amount":"10.00"}');
const algorithms = ["sha-256", "sha-512"];
const digests = new Map(
  algorithms.map((name) => [name, createHash(name.replace("-", "")).update(body).digest()]),
);
const usual = [...digests].map(([name, digest]) => `${name}=:${digest.toString("base64")}:`);
const wrong = [...digests].map(
  ([name, { length }]) => `${name}=:${Buffer.alloc(length, 7).toString("base64")}:`,
);

export const seeds = [
  ...usual,
  usual.join(", "),
  usual.join("\n"),
  `md5=:YQ==:, ${usual[0]}`,
  ...wrong,
  `${usual[0]}, ${wrong[1]}`,
  "md5=:YQ==:",
  "sha-256=:YQ==:",
  " ",
  "",
];
export const dictionary = [
  ...usual,
  ...wrong,
  ...algorithms,
  "\n",
  ", ",
  "\t",
  ...words`
    md5=:YQ==: =: : ;a SHA-256
  `,
];

// Base64 has no comma: a reading by splitting is a reading.
function readReference(lines) {
  const members = new Map();
  for (const piece of lines.join(", ").split(",")) {
    const [, key, base64 = ""] = /^[ \t]*([a-z*][a-z0-9_\-.*]*)=:([^:]*):[ \t]*$/.exec(piece) ?? [];
    if (key === undefined || members.has(key)) return undefined;
    members.set(key, decodeBase64(base64));
  }
  return members;
}

export function run(input) {
  const text = input.toString("latin1");
  const lines = text === "" ? [] : text.split("\n");
  const request = { rawHeaders: lines.flatMap((line) => ["Content-Digest", line]) };
  const { value: accepted, error } = attempt(() =>
    verifyContentDigest(request, body, { algorithms, required: true }),
  );
  if (error !== undefined) {
    const documented = /^content-digest-(?:invalid|mismatch|missing|unsupported)$/.test(error.code);
    assertProperty(isGuardError(error) && error.status === 401 && documented, "a refusal is documented", {
      error,
    });
    return error.code;
  }
  const members = readReference(lines);
  assertProperty(members !== undefined, "what is accepted is a dictionary of byte sequences");
  const known = new Map([...members].filter(([name]) => digests.has(name)));
  assertProperty(known.size > 0, "at least one digest of a known algorithm is needed");
  for (const [name, digest] of known)
    assertSame(digest, digests.get(name), "each known digest is the body's");
  assertSame(new Map(accepted), known, "what is returned is what was compared");
  return `accepted ${[...members.keys()].length} ${known.size}`;
}
