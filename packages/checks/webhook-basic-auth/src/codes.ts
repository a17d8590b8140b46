/** The codes of the refusals that this package makes. */
export type BasicAuthCode =
  | "credentials-malformed"
  | "credentials-missing"
  | "credentials-unavailable"
  | "credentials-wrong";
