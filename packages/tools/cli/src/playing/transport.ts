import type { KeyObject } from "node:crypto";
import { isIP } from "node:net";
import { importPrivateKey, statuses } from "@countersign/devtools/internal";
import { messageOf, UsageError, type Lists, type Switches, type Texts } from "../command-io.ts";
import { parseTimeout, readCertificates, readNamedFile } from "../input.ts";

export interface TransportFlags
  extends Texts<"ca" | "expect" | "forwardedFor">, Lists<"header">, Switches<"allowHttp" | "json"> {
  readonly url: string;
  readonly timeout: string;
}

export function sendOptionsOf({ timeout, ca }: Pick<TransportFlags, "timeout" | "ca">) {
  return { timeoutMs: parseTimeout(timeout), ca: ca === undefined ? undefined : readCertificates(ca) };
}

export function readHeaders({ header = [] }: TransportFlags): Readonly<Record<string, string>> {
  return Object.fromEntries(
    header.map((text) => {
      const colon = text.indexOf(":");
      if (colon < 1) throw new UsageError("--header: expected 'name: value'");
      return [text.slice(0, colon).trim(), text.slice(colon + 1).trim()];
    }),
  );
}

export function readForwardedFor({ forwardedFor }: TransportFlags): string | undefined {
  if (forwardedFor === undefined || isIP(forwardedFor) !== 0) return forwardedFor;
  throw new UsageError("--forwarded-for: expected an IP address");
}

export function readExpected({ expect }: TransportFlags): readonly string[] | undefined {
  if (expect === undefined) return undefined;
  const patterns = statuses.parsePatterns(expect);
  if (patterns === undefined) throw new UsageError("--expect: expected statuses such as 200,409 or 2xx");
  return patterns;
}

/** Throws a UsageError, which shows nothing of the file. */
export function readPrivateKey(file: string): KeyObject {
  const pem = readNamedFile("--key", file).toString("utf8");
  try {
    return importPrivateKey(pem);
  } catch (error) {
    throw new UsageError(`--key ${file}: ${messageOf(error)}`, { cause: error });
  }
}
