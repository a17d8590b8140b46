export type { IpAllowlistCode } from "./codes.ts";
export { compileAllowlist, type AddressMatcher, type AllowlistRules } from "./allowlist.ts";
export { addressAdmission, admitAddress } from "./check.ts";
export { expressAdmission, ipAllowlist } from "./middleware.ts";
export type { IpAllowlistOptions } from "./options.ts";
