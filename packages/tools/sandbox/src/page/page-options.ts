import type { KeyObject } from "node:crypto";
import { importPrivateKey } from "../key-pair.ts";
import { parsePayoutUrl } from "../payout-url.ts";

/** Options of the page: what its payouts are signed with, and where they go unless somebody changes it there. */
export interface PageOptions {
  /** Payout endpoint of the platform. Default `http://127.0.0.1:3000/api/v1/transaction`. */
  readonly payoutUrl?: string | undefined;
  /** Ed25519 private key, as PKCS#8 PEM or KeyObject. Default one that is made up; the page shows its public key. */
  readonly privateKey?: KeyObject | string | undefined;
  /** Its name as the platform knows it; required with `privateKey`. */
  readonly keyid?: string | undefined;
  /** File of the private key in the command lines that the page shows. Default `<keyid>.private.pem`. */
  readonly keyFile?: string | undefined;
}

const known: ReadonlySet<string> = new Set<keyof PageOptions>([
  "payoutUrl",
  "privateKey",
  "keyid",
  "keyFile",
]);

/** Undefined where there is to be no page. Throws a TypeError that names the option and shows no key. */
export function resolvePageOptions(page: unknown): PageOptions | undefined {
  if (page === undefined || page === false) return undefined;
  if (page === true) return {};
  if (!isPageOptions(page)) throw optionError("page", "true, false or an object");
  const unknown = Object.keys(page).find((key) => !known.has(key));
  if (unknown !== undefined) throw new TypeError(`startSandbox: unknown option page.${unknown}`);
  const { payoutUrl, privateKey, keyid, keyFile } = page;
  if (payoutUrl !== undefined) attempt("page.payoutUrl", () => parsePayoutUrl(payoutUrl));
  if (privateKey !== undefined) {
    if (keyid === undefined) throw optionError("page.keyid", "given with page.privateKey");
    attempt("page.privateKey", () => importPrivateKey(privateKey));
  }
  if (keyFile !== undefined && typeof keyFile !== "string") throw optionError("page.keyFile", "a string");
  return { ...page };
}

function attempt(option: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    const reason = error instanceof TypeError ? error.message : "it cannot be used";
    throw new TypeError(`startSandbox: option ${option}: ${reason}`, { cause: error });
  }
}

function optionError(option: string, expected: string): TypeError {
  return new TypeError(`startSandbox: option ${option} must be ${expected}`);
}

function isPageOptions(value: unknown): value is PageOptions {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
