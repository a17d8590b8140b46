import type { SignatureAlgorithm } from "./algorithms/algorithm.ts";
import type { FieldTypes } from "./field-types.ts";

/** The signature parameters of RFC 9421 section 2.3. */
export type SignatureParameter = "alg" | "created" | "expires" | "keyid" | "nonce" | "tag";

/** What a signature must be like to be taken: a policy of RFC 9421 section 3.2.1. */
export interface SignatureProfile {
  /**
   * Components that the signature has to cover: bare names, or full identifiers such as `"@query-param";name="id"`. More, and in any
   * order, is welcome.
   */
  readonly requiredComponents: readonly string[];
  /** Components that it must not cover. A bare name stands for the name with whatever parameters. Default none. */
  readonly forbiddenComponents?: readonly string[] | undefined;
  /**
   * Parameters that the signature has to have. Default `created`, `expires`, `keyid`, `alg`, `nonce`; a list that leaves some out
   * lets signatures without them pass. `keyid` is never left out: no key is guessed.
   */
  readonly requiredParameters?: readonly SignatureParameter[] | undefined;
  /** Parameters that it must not have, of RFC 9421 or any other. Default none. */
  readonly forbiddenParameters?: readonly string[] | undefined;
  /** The algorithms that are taken: of the parameter `alg`, and of the key where there is none. */
  readonly algorithms: readonly SignatureAlgorithm[];
  /**
   * Largest `expires - created`, in seconds. Without `expires` the signature ends so long after `created`; without `created`,
   * `expires` lies at most so far ahead. Without both, where neither is required, it never ends.
   */
  readonly windowSeconds: number;
  /** How far `created` may lie ahead of the clock, in seconds. */
  readonly clockSkewSeconds: number;
  /** Which values of `tag` are taken. Default any, and none at all. */
  readonly tag?: TagPolicy | undefined;
  /** The only label that is looked at. Default any: labels carry no meaning (RFC 9421 section 1.1). */
  readonly label?: string | undefined;
  /** Types of structured fields, for `;sf` and `;key`, beside those of the IANA registry that the engine knows. */
  readonly fieldTypes?: FieldTypes | undefined;
}

/** What `tag`, the signer's name for its application or protocol (RFC 9421 section 2.3), has to be. Values are compared exactly. */
export interface TagPolicy {
  /** The signature has one of these tags. */
  readonly require?: readonly string[] | undefined;
  /** The signature has none of these tags; one without a tag is taken. */
  readonly exclude?: readonly string[] | undefined;
}
