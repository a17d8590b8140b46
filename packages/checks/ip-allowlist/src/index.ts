export type { AddressMatcher, IpAllowlistCode } from "./address.ts";
export { compileAllowlist } from "./allowlist.ts";
export { addressAdmission, admitAddress } from "./check.ts";
export { liveAllowlist, type LiveAllowlist } from "./live-allowlist.ts";
export { expressAdmission, ipAllowlist } from "./middleware.ts";
export type { IpAllowlistOptions } from "./options.ts";
