import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { optional, type Environment } from "./environment.ts";
import { reasonOf, SettingError } from "./setting-error.ts";
import { readTextFile } from "./text-file.ts";

/** What an https server presents, in PEM form. */
export interface TlsSettings {
  /** The certificate, followed by those between it and its root. */
  readonly cert: string;
  readonly key: string;
}

const certExpected = "the path of a PEM file with the certificate, followed by those of its issuers";
const keyExpected = "the path of a PEM file with the private key of TLS_CERT, without a passphrase";

/** Reads certificate and key; undefined when neither is set. Throws a SettingError, which shows nothing of the key. */
export function readTls(env: Environment): TlsSettings | undefined {
  const cert = optional("TLS_CERT", env, readCertificate);
  const key = optional("TLS_KEY", env, readKey);
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined) throw new SettingError("TLS_CERT", `${certExpected}, because TLS_KEY is set`);
  if (key === undefined) throw new SettingError("TLS_KEY", `${keyExpected}, because TLS_CERT is set`);
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    throw new SettingError("TLS_KEY", `${keyExpected} (${reasonOf(error)})`);
  }
  return { cert, key };
}

function readCertificate(variable: string, file: string): string {
  return readPem(variable, file, { expected: certExpected, parse: (pem) => new X509Certificate(pem) });
}

function readKey(variable: string, file: string): string {
  return readPem(variable, file, { expected: keyExpected, parse: (pem) => createPrivateKey(pem) });
}

interface PemForm {
  readonly expected: string;
  /** Throws on anything else. An empty text in particular: a TLS server would start without it. */
  readonly parse: (pem: string) => unknown;
}

function readPem(variable: string, file: string, { expected, parse }: PemForm): string {
  let pem: string;
  try {
    pem = readTextFile(file);
  } catch (error) {
    throw new SettingError(variable, `${expected} (${reasonOf(error)})`, file);
  }
  try {
    parse(pem);
  } catch (error) {
    throw new SettingError(variable, `${expected}; ${file} holds none (${reasonOf(error)})`);
  }
  return pem;
}
