/** The codes of the refusals of addresses; `trust-proxy-unsafe` is the one of a door that cannot tell them. */
export type IpAllowlistCode =
  | "allowlist-unavailable"
  | "ip-is-proxy"
  | "ip-not-allowed"
  | "ip-unknown"
  | "trust-proxy-unsafe";
