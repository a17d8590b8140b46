import { type OptionOwner } from "@countersign/core/door";
import { assertAllowed, type AddressMatcher } from "./address.ts";
import { compileAllowlist } from "./allowlist.ts";
import type { AddressSource } from "./live-allowlist.ts";
import { factoryName, matcherOfSource, resolveOptions, type IpAllowlistOptions } from "./options.ts";

/**
 * Admits a client address that is in `allow`: a list, or what compileAllowlist() or liveAllowlist() made of one. Throws a
 * GuardError with `status`: `ip-not-allowed`, or `ip-unknown` for what is no address; a TypeError on a bad list. The caller
 * must know where the address comes from: a header field is the client's own text unless a trusted proxy wrote it.
 */
export function admitAddress(
  address: string | undefined,
  allow: AddressMatcher | AddressSource | readonly string[],
  status = 401,
): void {
  assertAllowed(address, matcherOf(allow), status);
}

function matcherOf(allow: AddressMatcher | AddressSource | readonly string[]): AddressMatcher {
  if (typeof allow === "function") return allow;
  return "isAllowed" in allow ? matcherOfSource(allow) : compileAllowlist(allow);
}

/** {@link admitAddress} with options that are checked once. Throws an OptionError that names `owner` as their holder. */
export function addressAdmission(
  options: IpAllowlistOptions,
  owner: OptionOwner = factoryName,
): (address: string | undefined) => void {
  const { isAllowed, status } = resolveOptions(options, owner);
  return (address) => assertAllowed(address, isAllowed, status);
}
