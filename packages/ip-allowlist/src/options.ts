import {
  option,
  publishBuilt,
  readOptions,
  type Given,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core";
import type { AddressMatcher, AddressRange } from "./address.ts";
import { compileRanges, readRanges, rulesTable } from "./allowlist.ts";

/** Options of `ipAllowlist`. */
export interface IpAllowlistOptions {
  /**
   * The addresses and CIDR blocks that may call, IPv4 and IPv6 mixed. Must not be empty. An IPv4 rule also admits the
   * IPv4-mapped spelling of its addresses; an IPv6 rule never admits an IPv4 client.
   */
  readonly allow: readonly string[];
  /** HTTP status of a refusal, 400 to 499. Default 401, as the payout interface asks. */
  readonly status?: number | undefined;
  /** Accept rules that together admit every address of a family, such as `0.0.0.0/0`. Default false. */
  readonly dangerouslyAllowAnyAddress?: boolean | undefined;
}

interface ReadAllowlist extends Omit<Given<IpAllowlistOptions>, "allow"> {
  readonly allow: readonly AddressRange[];
}

/** The name in messages, where no endpoint has one of its own. */
export const factory = "ipAllowlist";

export const table: OptionTable<IpAllowlistOptions, ReadAllowlist> = {
  allow: option.own(readRanges),
  status: option.integer({ min: 400, max: 499, fallback: 401 }),
  ...rulesTable,
};

/** {@link IpAllowlistOptions}, checked and compiled. */
export interface ResolvedOptions {
  readonly isAllowed: AddressMatcher;
  readonly status: number;
}

/** Throws an OptionError on anything that is not exactly as documented. */
export function resolveOptions(options: IpAllowlistOptions, owner: OptionOwner): ResolvedOptions {
  const { allow, status, ...rules } = readOptions(owner, table, options);
  publishBuilt(factory, owner, () => ({ rules: allow.length, ...rules }));
  return { isAllowed: compileRanges(allow, { ...rules, owner, name: "allow" }), status };
}
