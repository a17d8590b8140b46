export type { IpAllowlistCode } from "./codes.ts";
export { compileAllowlist } from "./allowlist.ts";
export { addressAdmission, admitAddress } from "./check.ts";
export { liveAllowlist, type LiveAllowlist, type LiveAllowlistOptions } from "./live-allowlist.ts";
export { expressAdmission, ipAllowlist } from "./middleware.ts";
export type { IpAllowlistOptions } from "./options.ts";
export type { AddressMatcher } from "./address.ts";
