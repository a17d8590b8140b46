import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { isatty } from "node:tty";
import { Option } from "commander";
import { codeOf, UsageError } from "./command-io.ts";

export function readNamedFile(option: string, file: string): Buffer {
  try {
    const stats = statSync(file);
    // /dev/zero never ends. A shell's `<(command)` is a pipe.
    if (!stats.isDirectory() && !stats.isFile() && !stats.isFIFO()) {
      throw new UsageError(`${option} ${file}: is no file`);
    }
    return readFileSync(file);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${option} ${file}: cannot be read (${codeOf(error)})`, { cause: error });
  }
}

/** Throws a UsageError at a terminal, where nobody would know that it waits. */
export function readStandardInput(): Buffer {
  if (isatty(0)) throw new UsageError("name a file, or give its content on standard input");
  try {
    return readFileSync(0);
  } catch (error) {
    throw new UsageError(`standard input cannot be read (${codeOf(error)})`, { cause: error });
  }
}

/** Throws a UsageError: node:tls would ignore text without certificates. */
export function readCertificates(file: string): Buffer {
  const pem = readNamedFile("--ca", file);
  try {
    new X509Certificate(pem).toString();
    return pem;
  } catch (error) {
    throw new UsageError(`--ca ${file}: holds no certificate in PEM form`, { cause: error });
  }
}

export function parseInteger(option: string, text: string, { min, max }: { min: number; max: number }) {
  const value = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max))
    throw new UsageError(`${option}: expected an integer from ${min} to ${max}`);
  return value;
}

export function parseTimeout(text: string): number {
  return parseInteger("--timeout", text, { min: 1, max: 600_000 });
}

export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

export function credentialOptions(): readonly Option[] {
  return [
    new Option("--username <name>", "username of basic authentication").env("WEBHOOK_USERNAME"),
    new Option("--password <password>", "password of basic authentication").env("WEBHOOK_PASSWORD"),
    new Option("--secret <secret>", "secret of the payload signature").env("WEBHOOK_SECRET"),
  ];
}

export function forwardedForOption(): Option {
  const acts =
    "act as the proxy that ends TLS: send X-Forwarded-For with this address, and X-Forwarded-Proto";
  return new Option("--forwarded-for <ip>", `${acts} with https`);
}

export function allowHttpOption(): Option {
  return new Option("--allow-http", "send over plain http to another host than this machine");
}

/** Throws a UsageError for an http URL of another host, unless allowed. Ignores what is no URL. */
export function assertHttpAllowed(option: string, url: string, allowHttp: boolean | undefined): void {
  if (allowHttp === true || !isPlainToOthers(url)) return;
  throw new UsageError(
    `${option}: plain http shows everything that is sent to the network; write https://, or add --allow-http`,
  );
}

/** As assertHttpAllowed(), without a flag that allows it. `because` is the reason, a sentence without its end. */
export function assertHttpsOrLoopback(option: string, url: string | undefined, because: string): void {
  if (url === undefined || !isPlainToOthers(url)) return;
  throw new UsageError(
    `${option}: ${because}; write https://. Plain http is for this machine alone, whatever is allowed: ` +
      "--allow-http is for payout, webhook, trigger, doctor and sandbox",
  );
}

/** Judges names by their text, whatever a name server says. */
export function isPlainToOthers(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && !/^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}
