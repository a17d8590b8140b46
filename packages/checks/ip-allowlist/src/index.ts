export type { IpAllowlistCode } from "./codes.ts";
export type { AddressMatcher } from "./address.ts";
export { compileAllowlist, type AllowlistRules } from "./allowlist.ts";
export { addressAdmission, admitAddress } from "./check.ts";
export {
  liveAllowlist,
  type AddressSource,
  type LiveAllowlist,
  type LiveAllowlistOptions,
} from "./live-allowlist.ts";
export { expressAdmission, ipAllowlist } from "./middleware.ts";
export type { AllowFunction, IpAllowlistOptions } from "./options.ts";
