import type { KeyObject } from "node:crypto";
import {
  createPayoutInstruction,
  importPrivateKey,
  isObjectText,
  jsonWithTexts,
  parseStatusPatterns,
  type StatusPattern,
} from "@countersign/sandbox";
import { UsageError } from "../command-io.ts";
import { readNamedFile } from "../input.ts";
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

/** Reads `name: value` into a header field. Throws a UsageError. */
export function parseHeader(text: string): readonly [name: string, value: string] {
  const colon = text.indexOf(":");
  if (colon < 1) throw new UsageError("--header: expected 'name: value'");
  return [text.slice(0, colon).trim(), text.slice(colon + 1).trim()];
}

/** Reads the statuses of `--expect`. Throws a UsageError. */
export function parseExpectedStatuses(text: string): readonly StatusPattern[] {
  const patterns = parseStatusPatterns(text);
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
