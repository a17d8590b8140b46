import { GuardError, quoteForLog } from "@countersign/core";
import { type OptionOwner } from "@countersign/core/door";
import type { IpAllowlistCode } from "./codes.ts";
import { parseAddress, type AddressMatcher } from "./address.ts";
import { compileAllowlist } from "./allowlist.ts";
import type { AddressSource } from "./live-allowlist.ts";
import { factoryName, matcherOfSource, resolveOptions, type IpAllowlistOptions } from "./options.ts";

/**
 * Admits a client address that is in `allow`: addresses and CIDR blocks, or what compileAllowlist() or liveAllowlist() has made of them. Throws a
 * GuardError with `status`: `ip-not-allowed`, or `ip-unknown` for what is no address. Where the address comes from is the caller's
 * business: a header field is the client's own text unless a trusted proxy wrote it. Throws a TypeError on a bad list.
 */
export function admitAddress(
  address: string | undefined,
  allow: AddressMatcher | AddressSource | readonly string[],
  status = 401,
): void {
  if (!matcherOf(allow)(address)) throw refusal(status, address);
}

function matcherOf(allow: AddressMatcher | AddressSource | readonly string[]): AddressMatcher {
  if (typeof allow === "function") return allow;
  return "isAllowed" in allow ? matcherOfSource(allow) : compileAllowlist(allow);
}

/**
 * {@link admitAddress} with a list and a status that are checked once. Throws an OptionError on a bad option; `owner` is who it
 * says has it.
 */
export function addressAdmission(
  options: IpAllowlistOptions,
  owner: OptionOwner = factoryName,
): (address: string | undefined) => void {
  const { isAllowed, status } = resolveOptions(options, owner);
  return (address) => admitAddress(address, isAllowed, status);
}

function refusal(status: number, address: string | undefined): GuardError<IpAllowlistCode> {
  if (address === undefined) {
    return new GuardError<IpAllowlistCode>({
      status,
      code: "ip-unknown",
      message: "the request has no client address",
    });
  }
  const known = parseAddress(address, new Uint32Array(4)) !== "unknown";
  return new GuardError<IpAllowlistCode>({
    status,
    code: known ? "ip-not-allowed" : "ip-unknown",
    message: `the client address ${quoteForLog(address)} is ${known ? "not in the list" : "no IP address"}`,
  });
}
