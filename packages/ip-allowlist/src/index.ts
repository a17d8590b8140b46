export { compileAllowlist, type AddressMatcher, type AllowlistRules } from "./allowlist.ts";
export { ipAllowlist } from "./middleware.ts";
export type { IpAllowlistOptions } from "./options.ts";
