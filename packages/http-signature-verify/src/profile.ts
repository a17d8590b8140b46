import {
  holderOf,
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionRule,
  type OptionTable,
} from "@countersign/core";
import {
  defaultComponents,
  derivedComponents,
  type SignatureProfile,
  type TagPolicy,
} from "@countersign/http-message-signatures";

/** Exactly one of the two. Values are compared exactly; none is empty. */
export type TagOption =
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
   * Components that a signature has to cover. Default `@method`, `@path`, `content-type`, `content-digest`. With `@authority` or
   * `@target-uri` in it, `origin` has to be given; `host` is refused.
   */
  readonly requiredComponents?: readonly string[] | undefined;
  /** Which values of the parameter `tag` are taken (RFC 9421 section 2.3). Default any, and none at all. */
  readonly tag?: TagOption | undefined;
  /** Signature algorithms that are taken. Default and at present only `ed25519`. */
  readonly algorithms?: readonly "ed25519"[] | undefined;
  /** Largest `expires - created`, in seconds. Default 60. */
  readonly windowSeconds?: number | undefined;
  /** How far `created` may lie ahead of the clock, in seconds. Default 30. */
  readonly clockSkewSeconds?: number | undefined;
}

const tags: OptionRule<readonly string[] | undefined> = option.optional(option.own(readTags));
const tagTable: OptionTable<TagOption, TagPolicy> = { require: tags, exclude: tags };

export const profileRules: OptionTable<ProfileOptions, SignatureProfile> = {
  requiredComponents: option.own(readComponents, defaultComponents.join(", ")),
  tag: option.optional(option.own(readTag), "any, or none"),
  algorithms: option.own(readAlgorithms, '["ed25519"]'),
  windowSeconds: option.integer({ min: 1, max: 3600, fallback: 60 }),
  clockSkewSeconds: option.integer({ min: 0, max: 300, fallback: 30 }),
};

/**
 * Without origin the value comes from the caller's own Host field: a request that was signed for another server would pass. Throws
 * an OptionError.
 */
export function assertBindsToServer(
  owner: OptionOwner,
  { requiredComponents, origin }: SignatureProfile & { readonly origin: object | undefined },
): void {
  const named = requiredComponents.find((name) => name === "@authority" || name === "@target-uri");
  if (named === undefined || origin !== undefined) return;
  const expected = `the origin that callers see, such as "https://pay.example", where ${named} is required`;
  throw optionError(owner, "origin", expected, origin);
}

function readComponents(
  given: unknown = defaultComponents,
  owner: OptionOwner,
  name: string,
): readonly string[] {
  if (!Array.isArray(given) || given.length === 0) {
    throw optionError(owner, name, "a list of at least one component", given);
  }
  // Array.from visits the holes of a sparse array too.
  const components = Array.from(given, (component: unknown) => readComponent(component, owner, name));
  if (components.includes("host")) {
    const expected = "a list without host, which nothing compares; require @authority and give origin";
    throw optionError(owner, name, expected, given);
  }
  return components;
}

function readComponent(component: unknown, owner: OptionOwner, name: string): string {
  if (
    typeof component === "string" &&
    (component.startsWith("@")
      ? derivedComponents.some((derived) => derived === component)
      : /^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(component))
  ) {
    return component;
  }
  throw optionError(owner, name, `lower-case field names or ${derivedComponents.join(", ")}`, component);
}

function readAlgorithms(
  algorithms: unknown = ["ed25519"],
  owner: OptionOwner,
  name: string,
): readonly "ed25519"[] {
  if (Array.isArray(algorithms) && algorithms.length > 0 && algorithms.every((alg) => alg === "ed25519")) {
    return [...algorithms];
  }
  throw optionError(owner, name, '["ed25519"]', algorithms);
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
