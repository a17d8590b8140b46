import { GuardError, OptionError } from "@countersign/core";
import {
  appAnswers,
  comeAgain,
  hasMethods,
  option,
  readOptions,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core/internal";
import type { AddressMatcher, AddressRange, IpAllowlistCode } from "./address.ts";
import { compileRanges, readRanges, rulesTable } from "./allowlist.ts";
import type { AddressSource } from "./live-allowlist.ts";

export interface IpAllowlistOptions {
  /**
   * Addresses and CIDR blocks that may call, at least one. An IPv4 rule also admits its IPv4-mapped spelling, an IPv6 rule no IPv4 client.
   * For a list that changes: `liveAllowlist()`, or an object with `isAllowed(address)`; while that throws, everybody is refused (503).
   */
  readonly allow: readonly string[] | AddressSource;
  /** HTTP status of a refusal, 400 to 499. Default 401, as the payout interface asks. */
  readonly status?: number | undefined;
  /** Accept rules that together admit every address of a family, such as `0.0.0.0/0`. Default false. */
  readonly dangerouslyAllowAnyAddress?: boolean | undefined;
}

export const factoryName = "ipAllowlist";

export const table = {
  allow: option.shown(option.own(readAllow), (allow) => (Array.isArray(allow) ? allow.length : null)),
  status: option.integer({ min: 400, max: 499, fallback: 401 }),
  dangerouslyAllowAnyAddress: option.shown(rulesTable.dangerouslyAllowAnyAddress),
} satisfies OptionTable<IpAllowlistOptions, unknown>;

/** Throws an OptionError on anything that is not exactly as documented. */
export function resolveOptions(
  options: IpAllowlistOptions,
  owner: OptionOwner,
): { readonly isAllowed: AddressMatcher; readonly status: number } {
  const { allow, status, ...rules } = readOptions(owner, table, options);
  if (!("isAllowed" in allow)) {
    return { isAllowed: compileRanges(allow, { ...rules, owner, name: "allow" }), status };
  }
  if (options.dangerouslyAllowAnyAddress !== undefined) {
    const what = "belongs to the source of the list";
    throw new OptionError(owner, { option: "dangerouslyAllowAnyAddress", what });
  }
  return { isAllowed: matcherOfSource(allow), status };
}

/** Matches by a source. Throws a GuardError (503) when `isAllowed` throws or returns no boolean: an app's error must not admit. */
export function matcherOfSource(source: AddressSource): AddressMatcher {
  return (address) => {
    let answer: unknown;
    try {
      answer = source.isAllowed(address);
    } catch (cause) {
      throw unavailable(cause);
    }
    if (typeof answer === "boolean") return answer;
    const what = appAnswers.isVainPromise(answer) ? "a promise" : "no boolean";
    throw unavailable(new TypeError(`isAllowed() gave ${what}`));
  };
}

function unavailable(cause: unknown): GuardError<IpAllowlistCode> {
  const init = comeAgain("allowlist-unavailable", "there is no good list of addresses", 30);
  return new GuardError<IpAllowlistCode>({ ...init, problem: undefined, cause });
}

function readAllow(
  value: unknown,
  owner: OptionOwner,
  name: string,
): readonly AddressRange[] | AddressSource {
  return hasMethods<AddressSource>(value, "isAllowed") ? value : readRanges(value, owner, name);
}
