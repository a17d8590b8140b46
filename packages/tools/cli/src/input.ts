import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { isatty } from "node:tty";
import { UsageError } from "./command-io.ts";
import { codeOf } from "./thrown.ts";

/** Of an answer of a sandbox or an inspector, decoded: what is longer is no answer of theirs. */
export const answerLimitBytes: number = 16 * 1024 * 1024;

/** The bytes of a file that an option names. Throws a UsageError. */
export function readNamedFile(option: string, file: string): Buffer {
  try {
    const stats = statSync(file);
    // /dev/zero never ends. A pipe is what `<(command)` of a shell is: whoever names one waits for its writer.
    if (!stats.isDirectory() && !stats.isFile() && !stats.isFIFO()) {
      throw new UsageError(`${option} ${file}: is no file`);
    }
    return readFileSync(file);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${option} ${file}: cannot be read (${codeOf(error)})`, { cause: error });
  }
}

/** All bytes of standard input. Throws a UsageError at a terminal, where nobody would know what is waited for. */
export function readStandardInput(): Buffer {
  if (isatty(0)) throw new UsageError("name a file, or give its content on standard input");
  try {
    return readFileSync(0);
  } catch (error) {
    throw new UsageError(`standard input cannot be read (${codeOf(error)})`, { cause: error });
  }
}

/** The certificates in a PEM file. Throws a UsageError: node:tls would ignore text that holds none. */
export function readCertificates(file: string): Buffer {
  const pem = readNamedFile("--ca", file);
  if (!holdsCertificate(pem)) throw new UsageError(`--ca ${file}: holds no certificate in PEM form`);
  return pem;
}

/** Reads an integer within bounds. Throws a UsageError. */
export function parseInteger(
  option: string,
  text: string,
  { min, max }: { min: number; max: number },
): number {
  const value = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max))
    throw new UsageError(`${option}: expected an integer from ${min} to ${max}`);
  return value;
}

function holdsCertificate(pem: Buffer): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}
