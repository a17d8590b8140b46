import type { KeyObject } from "node:crypto";
import { createPayoutInstruction, type SendOptions } from "@countersign/sandbox";
import {
  importPrivateKey,
  isObjectText,
  jsonWithTexts,
  parseStatusPatterns,
} from "@countersign/sandbox/protocol";
import { UsageError } from "../command-io.ts";
import { parseInteger, readCertificates, readNamedFile } from "../input.ts";
import { messageOf } from "../thrown.ts";

/** The flags of `countersign payout` that make up the body. */
export interface BodyFlags {
  readonly file?: string | undefined;
  readonly idempotencyKey?: string | undefined;
  readonly businessId?: string | undefined;
  readonly iban?: string | undefined;
  readonly bic?: string | undefined;
  readonly name?: string | undefined;
  readonly amount?: string | undefined;
  readonly reference?: string | undefined;
  readonly referenceField?: string | undefined;
}

/** The bytes to send: those of the file, or a sample instruction with the given values, the amount as typed. Throws a UsageError. */
export function readBody({ file, amount, ...fields }: BodyFlags): Buffer {
  if (file !== undefined) return readJsonFile(file);
  if (amount !== undefined && !isObjectText(amount)) {
    throw new UsageError(`--amount: is not JSON of an object such as {"value":"10.00","currency":"EUR"}`);
  }
  const texts = amount === undefined ? {} : { amount };
  return Buffer.from(jsonWithTexts(createPayoutInstruction(fields), texts), "utf8");
}

/** The private key in a PEM file. Throws a UsageError, which shows nothing of the file. */
export function readPrivateKey(file: string): KeyObject {
  const pem = readNamedFile("--key", file).toString("utf8");
  try {
    return importPrivateKey(pem);
  } catch (error) {
    throw new UsageError(`--key ${file}: ${messageOf(error)}`, { cause: error });
  }
}

/** The flags of how a request is sent, and what is expected of its answer. */
export interface TransportFlags {
  readonly url: string;
  readonly header?: readonly string[] | undefined;
  readonly timeout: string;
  readonly ca?: string | undefined;
  readonly allowHttp?: boolean | undefined;
  readonly expect?: string | undefined;
  readonly json?: boolean | undefined;
}

/** How a request is sent. Throws a UsageError. */
export function sendOptionsOf({ timeout, ca }: TransportFlags): SendOptions {
  return {
    timeoutMs: parseInteger("--timeout", timeout, { min: 1, max: 600_000 }),
    ca: ca === undefined ? undefined : readCertificates(ca),
  };
}

/** The further header fields. Throws a UsageError. */
export function readHeaders({ header = [] }: TransportFlags): Readonly<Record<string, string>> {
  return Object.fromEntries(header.map(parseHeader));
}

function parseHeader(text: string): readonly [name: string, value: string] {
  const colon = text.indexOf(":");
  if (colon < 1) throw new UsageError("--header: expected 'name: value'");
  return [text.slice(0, colon).trim(), text.slice(colon + 1).trim()];
}

/** The statuses of `--expect`, if it is there. Throws a UsageError. */
export function readExpected({ expect }: TransportFlags): readonly string[] | undefined {
  if (expect === undefined) return undefined;
  const patterns = parseStatusPatterns(expect);
  if (patterns === undefined) throw new UsageError("--expect: expected statuses such as 200,409 or 2xx");
  return patterns;
}

function readJsonFile(file: string): Buffer {
  const bytes = readNamedFile("--file", file);
  try {
    JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    throw new UsageError(`--file ${file}: is not JSON in UTF-8`, { cause: error });
  }
  return bytes;
}
