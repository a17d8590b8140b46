import {
  holderOf,
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/door";
import {
  defaultComponents,
  signatureAlgorithms,
  type SignatureAlgorithm,
} from "@countersign/http-message-signatures";
import {
  defaultParameters,
  type FieldTypes,
  type SignatureParameter,
  type TagPolicy,
} from "@countersign/http-message-signatures/door";
import { assertComponents, readForbiddenComponents, readRequiredComponents } from "./profile-components.ts";

/** Exactly one of the two. Values are compared exactly; none is empty. */
type TagOption =
  | {
      /** The signature's tag has to be this one, or one of these. */
      readonly require: string | readonly string[];
      readonly exclude?: undefined;
    }
  | {
      /** The signature's tag must be none of these; a signature without a tag is taken. */
      readonly exclude: string | readonly string[];
      readonly require?: undefined;
    };

/** The options of httpSignatureVerify about a signature itself. */
export interface ProfileOptions {
  /**
   * Components that a signature has to cover: bare names, or full identifiers such as `"@query-param";name="id"`. Default `@method`,
   * `@path`, `content-type`, `content-digest`. With `@authority` or `@target-uri` in it, `origin` has to be given; `host` is refused.
   */
  readonly requiredComponents?: readonly string[] | undefined;
  /** Components that a signature must not cover. A bare name stands for the name with whatever parameters. Default none. */
  readonly forbiddenComponents?: readonly string[] | undefined;
  /**
   * Parameters that a signature has to have: `keyid`, `created` or `expires` or both, and any of `alg`, `nonce`, `tag`. Default
   * `created`, `expires`, `keyid`, `alg`, `nonce`. Without `expires` a signature ends `windowSeconds` after `created`; without a nonce
   * it can be replayed until then.
   */
  readonly requiredParameters?: readonly SignatureParameter[] | undefined;
  /** Parameters that a signature must not have. Default none. */
  readonly forbiddenParameters?: readonly string[] | undefined;
  /** The only label that is looked at. Default any. */
  readonly label?: string | undefined;
  /** Types of structured fields, for `;sf` and `;key`, beside those of the IANA registry. Default none. */
  readonly fieldTypes?: FieldTypes | undefined;
  /** Which values of the parameter `tag` are taken (RFC 9421 section 2.3). Default any, and none at all. */
  readonly tag?: TagOption | undefined;
  /** Signature algorithms that are taken. Default `ed25519` alone. */
  readonly algorithms?: readonly SignatureAlgorithm[] | undefined;
  /** Largest `expires - created`, in seconds. Default 60. */
  readonly windowSeconds?: number | undefined;
  /** How far `created` may lie ahead of the clock, in seconds. Default 30. */
  readonly clockSkewSeconds?: number | undefined;
}

const tags = option.optional(option.own(readTags));
const tagTable = { require: tags, exclude: tags } satisfies OptionTable<TagOption, unknown>;

export const profileRules = {
  requiredComponents: option.shown(option.own(readRequiredComponents, defaultComponents.join(", "))),
  forbiddenComponents: option.optional(option.own(readForbiddenComponents)),
  requiredParameters: option.shown(option.own(readRequiredParameters, defaultParameters.join(", "))),
  forbiddenParameters: option.optional(option.own(readForbiddenParameters)),
  label: option.optional(option.own(readLabel), "any"),
  fieldTypes: option.optional(option.own(readFieldTypes)),
  tag: option.optional(option.own(readTag), "any, or none"),
  algorithms: option.own(readAlgorithms, '["ed25519"]'),
  windowSeconds: option.integer({ min: 1, max: 3600, fallback: 60 }),
  clockSkewSeconds: option.integer({ min: 0, max: 300, fallback: 30 }),
} satisfies OptionTable<ProfileOptions, unknown>;

/** The options with defaults, checked. */
export type ResolvedProfile = ReadOptions<typeof profileRules>;

/** What a rule by itself cannot see. Throws an OptionError. */
export function assertConsistent(
  owner: OptionOwner,
  profile: ResolvedProfile & { readonly origin: object | undefined },
): void {
  assertComponents(owner, profile);
  const { requiredParameters, forbiddenParameters = [] } = profile;
  const both = requiredParameters.find((name) => forbiddenParameters.includes(name));
  if (both === undefined) return;
  throw optionError(owner, "forbiddenParameters", `parameters other than ${both}, which is required`, both);
}

function readRequiredParameters(
  given: unknown = defaultParameters,
  owner: OptionOwner,
  name: string,
): readonly SignatureParameter[] {
  const list: readonly unknown[] = Array.isArray(given) ? given : [];
  const known = parameterNames.filter((parameter) => list.includes(parameter));
  // What never ends would need a nonce that is never forgotten.
  const ends = known.includes("created") || known.includes("expires");
  if (ends && known.includes("keyid") && list.length === known.length) return known;
  const expected = `a list of ${parameterNames.join(", ")}, with keyid, and with created or expires`;
  throw optionError(owner, name, expected, given);
}

const parameterNames: readonly SignatureParameter[] = [...defaultParameters, "tag"];

function readForbiddenParameters(given: unknown, owner: OptionOwner, name: string): readonly string[] {
  if (Array.isArray(given) && given.length > 0) {
    const sound = given.filter(isKey);
    if (sound.length === given.length && !sound.includes("keyid")) return sound;
  }
  throw optionError(owner, name, "a list of lower-case parameter names other than keyid", given);
}

function readLabel(label: unknown, owner: OptionOwner, name: string): string {
  if (isKey(label)) return label;
  throw optionError(owner, name, "a lower-case dictionary key", label);
}

function isKey(value: unknown): value is string {
  return typeof value === "string" && /^[a-z*][a-z0-9_\-.*]*$/.test(value);
}

function readFieldTypes(types: unknown, owner: OptionOwner, name: string): FieldTypes {
  const entries = typeof types === "object" && types !== null ? Object.entries(types) : [];
  const sound = entries.filter(
    ([field, type]) => /^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(field) && isFieldType(type),
  );
  if (entries.length > 0 && sound.length === entries.length) return Object.freeze(Object.fromEntries(sound));
  const expected = 'an object such as { "x-items": "list" } of "dictionary", "item" and "list"';
  throw optionError(owner, name, expected, types);
}

function isFieldType(type: unknown): boolean {
  return type === "dictionary" || type === "item" || type === "list";
}

function readAlgorithms(
  algorithms: unknown = ["ed25519"],
  owner: OptionOwner,
  name: string,
): readonly SignatureAlgorithm[] {
  const list: readonly unknown[] = Array.isArray(algorithms) ? algorithms : [];
  const known = signatureAlgorithms.filter((alg) => list.includes(alg));
  if (known.length > 0 && known.length === list.length) return known;
  throw optionError(owner, name, `a list of ${signatureAlgorithms.join(", ")}, each once`, algorithms);
}

function readTag(tag: unknown, owner: OptionOwner, name: string): TagPolicy {
  const read = readOptions(holderOf(owner, name), tagTable, tag);
  if ((read.require === undefined) !== (read.exclude === undefined)) return read;
  throw optionError(owner, name, "an object with exactly one of require and exclude", tag);
}

function readTags(given: unknown, owner: OptionOwner, name: string): readonly string[] {
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  const sound = list.filter(isTag);
  if (list.length > 0 && sound.length === list.length) return sound;
  throw optionError(owner, name, "a tag or a list of tags in printable ASCII, none empty", given);
}

function isTag(value: unknown): value is string {
  return typeof value === "string" && /^[\x20-\x7e]+$/.test(value);
}
