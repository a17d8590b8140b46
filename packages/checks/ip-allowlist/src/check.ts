import { type OptionOwner } from "@countersign/core/internal";
import { assertAllowed, type AddressMatcher } from "./address.ts";
import { compileAllowlist } from "./allowlist.ts";
import type { AddressSource } from "./live-allowlist.ts";
import { factoryName, matcherOfSource, resolveOptions, type IpAllowlistOptions } from "./options.ts";

/**
 * Admits a client address in `allow`: a list, or what compileAllowlist() or liveAllowlist() made. Throws a GuardError (`ip-not-allowed`,
 * `ip-unknown` for no address), a TypeError on a bad list. A header field is the client's text unless a trusted proxy wrote it.
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

/** {@link admitAddress} with options checked once. Throws an OptionError that names `owner`. */
export function addressAdmission(
  options: IpAllowlistOptions,
  owner: OptionOwner = factoryName,
): (address: string | undefined) => void {
  const { isAllowed, status, readClient } = resolveOptions(options, owner);
  return (address) => assertAllowed(readClient(address), isAllowed, status);
}
