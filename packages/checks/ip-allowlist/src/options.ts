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
import { withoutPort, type AddressMatcher, type AddressRange, type IpAllowlistCode } from "./address.ts";
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
  /**
   * Take the address of a client that the proxy names with a port, as Azure's Application Gateway does: `203.0.113.7:5123` or
   * `[2001:db8::7]:5123`. Default false: such a request is refused.
   */
  readonly ignorePort?: boolean | undefined;
  /** Accept rules that together admit every address of a family, such as `0.0.0.0/0`. Default false. */
  readonly dangerouslyAllowAnyAddress?: boolean | undefined;
}

export const factoryName = "ipAllowlist";

export const table = {
  allow: option.shown(option.own(readAllow), (allow) => (Array.isArray(allow) ? allow.length : null)),
  status: option.integer({ min: 400, max: 499, fallback: 401 }),
  ignorePort: option.boolean(false),
  dangerouslyAllowAnyAddress: option.shown(rulesTable.dangerouslyAllowAnyAddress),
} satisfies OptionTable<IpAllowlistOptions, unknown>;

/** The options as an admission works with them. */
export interface ResolvedAllowlist {
  readonly isAllowed: AddressMatcher;
  readonly status: number;
  /** Reads what the adapter gives for the client's address. */
  readonly readClient: (address: string | undefined) => string | undefined;
}

/** Throws an OptionError on anything that is not exactly as documented. */
export function resolveOptions(options: IpAllowlistOptions, owner: OptionOwner): ResolvedAllowlist {
  const { allow, status, ignorePort, ...rules } = readOptions(owner, table, options);
  const readClient = ignorePort ? withoutPort : asGiven;
  if (!("isAllowed" in allow)) {
    return { isAllowed: compileRanges(allow, { ...rules, owner, name: "allow" }), status, readClient };
  }
  if (options.dangerouslyAllowAnyAddress !== undefined) {
    const what = "belongs to the source of the list";
    throw new OptionError(owner, { option: "dangerouslyAllowAnyAddress", what });
  }
  return { isAllowed: matcherOfSource(allow), status, readClient };
}

function asGiven(address: string | undefined): string | undefined {
  return address;
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
