import { assertKnownOptions, integerOption } from "@countersign/guard";
import { compileRules, type AddressMatcher } from "./allowlist.ts";

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

/** {@link IpAllowlistOptions}, checked and compiled. */
export interface ResolvedOptions {
  readonly isAllowed: AddressMatcher;
  readonly status: number;
}

/** Throws a TypeError on anything that is not exactly as documented. */
export function resolveOptions(options: IpAllowlistOptions): ResolvedOptions {
  assertKnownOptions("ipAllowlist", options, ["allow", "status", "dangerouslyAllowAnyAddress"]);
  return {
    isAllowed: compileRules("ipAllowlist", "allow", options.allow, options.dangerouslyAllowAnyAddress),
    status: integerOption("ipAllowlist", "status", options.status, { min: 400, max: 499, fallback: 401 }),
  };
}
