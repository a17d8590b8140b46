import type { KeyObject } from "node:crypto";
import { types } from "node:util";
import { OptionError } from "@countersign/core";
import {
  holderOf,
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionRule,
  type OptionTable,
} from "@countersign/core/internal";
import { importPrivateKey } from "../key-pair.ts";
import { parsePayoutUrl } from "../payout-url.ts";

export interface PageOptions {
  /** Payout endpoint of the platform. Default `http://127.0.0.1:3000/api/v1/transaction`. */
  readonly payoutUrl?: string | undefined;
  /** Ed25519 private key, as PKCS#8 PEM or KeyObject. Default a new one; the page shows its public key. */
  readonly privateKey?: KeyObject | string | undefined;
  /** As the platform knows it; required with `privateKey`. */
  readonly keyid?: string | undefined;
  /** File of the private key in the command lines that the page shows. Default `<keyid>.private.pem`. */
  readonly keyFile?: string | undefined;
}

const text: OptionRule<string> = option.own((value, owner, name) => {
  if (typeof value === "string") return value;
  throw optionError(owner, name, "a string", value);
});

const payoutUrl: OptionRule<string> = option.own((value, owner, name) => {
  const url = text.read(value, owner, name);
  orOptionError(owner, name, () => parsePayoutUrl(url));
  return url;
});

const privateKey: OptionRule<KeyObject> = option.own((value, owner, name) => {
  const key = types.isKeyObject(value) ? value : text.read(value, owner, name);
  return orOptionError(owner, name, () => importPrivateKey(key));
});

const table: OptionTable<PageOptions, PageOptions> = {
  payoutUrl: option.optional(payoutUrl),
  privateKey: option.optional(privateKey),
  keyid: option.optional(text),
  keyFile: option.optional(text),
};

/** Throws an OptionError that shows no key; undefined for no page. */
export function readPage(page: unknown, owner: OptionOwner, name: string): PageOptions | undefined {
  if (page === undefined || page === false) return undefined;
  const holder = holderOf(owner, name);
  const read = readOptions(holder, table, page === true ? {} : page);
  if (read.privateKey !== undefined && read.keyid === undefined)
    throw new OptionError(holder, { option: "keyid", what: "must be given with page.privateKey" });
  return read;
}

function orOptionError<T>(owner: OptionOwner, name: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    const reason = cause instanceof TypeError ? `: ${cause.message}` : "";
    throw new OptionError(owner, { option: name, what: `cannot be used${reason}`, cause });
  }
}
