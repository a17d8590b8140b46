import { jwkThumbprint, type ImportedKeys, type VerificationKey } from "@countersign/http-message-signatures";
import { printableLine } from "../printable.ts";
import { jsonLine } from "../json-output.ts";
import { tableFor, type Column } from "../table.ts";
import { shownKey } from "./key-text.ts";

const columns: readonly Column[] = [
  { title: "keyid", whole: true },
  { title: "alg", whole: true },
  { title: "thumbprint (RFC 7638)", whole: true },
  { title: "validity" },
];

/** The keys of a file as a table for people; `now` in Unix seconds. */
export function keyFileTable(
  keys: readonly VerificationKey[],
  now: number,
  terminalColumns: number | undefined,
): string {
  const rows = keys.map((key) => [
    shownKey(key.keyid),
    key.alg,
    jwkThumbprint(key),
    describeValidity(key, now),
  ]);
  const { head, row } = tableFor(columns, rows, terminalColumns);
  return head + rows.map(row).join("");
}

/** The keys of a file, one JSON document in each line. */
export function keyFileJson(keys: readonly VerificationKey[]): string {
  return keys
    .map((key) => {
      const { publicKey: _, ...members } = key;
      return jsonLine({ ...members, thumbprint: jwkThumbprint(key) });
    })
    .join("");
}

/** One line for each key that cannot be used. */
export function keyFaults({ faults }: ImportedKeys): string {
  return faults
    .map(
      ({ keyid, error }) =>
        `error: ${keyid === undefined ? "a key" : `key ${shownKey(keyid)}`}: ${reasonOf(error)}\n`,
    )
    .join("");
}

/** What is wrong with a key or a file, without the name of the function that says it. */
export function reasonOf({ message }: Error): string {
  return printableLine(message.replace(/^importVerificationKey: /, ""));
}

function describeValidity({ notBefore, notAfter, revokedAt }: VerificationKey, now: number): string {
  const parts = [
    revokedAt === undefined
      ? undefined
      : `${revokedAt <= now ? "revoked" : "to be revoked"} ${dateOf(revokedAt)}`,
    notBefore === undefined ? undefined : `${notBefore <= now ? "since" : "not before"} ${dateOf(notBefore)}`,
    notAfter === undefined ? undefined : `${notAfter < now ? "ended" : "until"} ${dateOf(notAfter)}`,
  ].filter((part) => part !== undefined);
  return parts.length === 0 ? "no limit" : parts.join(", ");
}

function dateOf(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toISOString().replace(".000Z", "Z");
}
