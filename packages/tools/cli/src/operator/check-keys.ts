import path from "node:path";
import type { ImportedKeys, VerificationKey } from "@countersign/http-message-signatures";
import { importKeys, jwkThumbprint } from "@countersign/http-message-signatures";
import { keyDocuments } from "@countersign/http-message-signatures/internal";
import { exitCodes, type CommandIo, type ExitCode, type Texts } from "../command-io.ts";
import { readNamedFile } from "../input.ts";
import { jsonLine, printableLine } from "../output.ts";
import { tableText } from "../table.ts";
import { shownKey } from "./key-text.ts";

export type CheckFlags = Texts<"keyid"> & { readonly json?: true };

const maxKeys = 10_000;

export function checkKeys(file: string, { keyid, json }: CheckFlags, io: CommandIo): ExitCode {
  const name = path.basename(file);
  const content = readNamedFile("keys check", file);
  let imported: ImportedKeys;
  try {
    imported = importKeys(content, {
      keyid: keyid ?? keyDocuments.keyidOfFile(name) ?? path.parse(name).name,
      maxKeys,
    });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    io.writeError(`error: ${reasonOf(error)}\n`);
    return exitCodes.otherwise;
  }
  const { faults } = imported;
  const keys = [...imported.keys.values()];
  if (keys.length > 0) io.writeOut(json === true ? keysJson(keys) : keysTable(keys, io));
  for (const fault of faults) {
    const which = fault.keyid === undefined ? "a key" : `key ${shownKey(fault.keyid)}`;
    // A JWK Set may hold keys of its owner that are not for us (RFC 7517 section 5).
    const severity = fault.isForOthers ? "left out" : "error";
    io.writeError(`${severity}: ${which}: ${reasonOf(fault.error)}\n`);
  }
  if (keys.length + faults.length === 0) io.writeError("error: the file holds no key\n");
  const isSound = keys.length > 0 && faults.every(({ isForOthers }) => isForOthers);
  return isSound ? exitCodes.asExpected : exitCodes.otherwise;
}

const titles = ["keyid", "alg", "thumbprint (RFC 7638)", "validity"];

function keysTable(keys: readonly VerificationKey[], { clock, columns }: CommandIo): string {
  const rows = keys.map((key) => [
    shownKey(key.keyid),
    key.alg,
    jwkThumbprint(key),
    validityOf(key, clock()),
  ]);
  return tableText(titles, rows, { whole: 3, columns });
}

function keysJson(keys: readonly VerificationKey[]): string {
  return keys
    .map((key) => {
      const { publicKey: _, ...members } = key;
      return jsonLine({ ...members, thumbprint: jwkThumbprint(key) });
    })
    .join("");
}

function reasonOf({ message }: Error): string {
  return printableLine(message.replace(/^importVerificationKey: /, ""));
}

function validityOf({ notBefore, notAfter, revokedAt }: VerificationKey, now: number): string {
  const parts = [
    revokedAt === undefined ? "" : `${revokedAt <= now ? "revoked" : "to be revoked"} ${dateOf(revokedAt)}`,
    notBefore === undefined ? "" : `${notBefore <= now ? "since" : "not before"} ${dateOf(notBefore)}`,
    notAfter === undefined ? "" : `${notAfter < now ? "ended" : "until"} ${dateOf(notAfter)}`,
  ];
  return parts.filter((part) => part !== "").join(", ") || "no limit";
}

function dateOf(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toISOString().replace(".000Z", "Z");
}
