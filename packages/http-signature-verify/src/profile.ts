import { assertKnownOptions, integerOption, optionError } from "@countersign/guard";
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

/** What the options say about a signature itself. Throws a TypeError that names the option. */
export function resolveProfile(factory: string, options: ProfileOptions, origin: unknown): SignatureProfile {
  const { requiredComponents = defaultComponents, algorithms = ["ed25519"] } = options;
  if (!Array.isArray(requiredComponents) || requiredComponents.length === 0) {
    throw optionError(factory, "requiredComponents", "a list of at least one component", requiredComponents);
  }
  for (const name of requiredComponents) assertComponentName(factory, name);
  assertBindsToServer(factory, requiredComponents, origin);
  if (!Array.isArray(algorithms) || algorithms.length === 0 || algorithms.some((alg) => alg !== "ed25519")) {
    throw optionError(factory, "algorithms", '["ed25519"]', algorithms);
  }
  return {
    requiredComponents: [...requiredComponents],
    algorithms: [...algorithms],
    tag: resolveTag(factory, options.tag),
    windowSeconds: integerOption(factory, "windowSeconds", options.windowSeconds, {
      min: 1,
      max: 3600,
      fallback: 60,
    }),
    clockSkewSeconds: integerOption(factory, "clockSkewSeconds", options.clockSkewSeconds, {
      min: 0,
      max: 300,
      fallback: 30,
    }),
  };
}

function assertComponentName(factory: string, name: unknown): void {
  const sound =
    typeof name === "string" &&
    (name.startsWith("@")
      ? derivedComponents.some((derived) => derived === name)
      : /^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(name));
  if (!sound) {
    throw optionError(
      factory,
      "requiredComponents",
      `lower-case field names or ${derivedComponents.join(", ")}`,
      name,
    );
  }
}

// Without origin the value comes from the caller's own Host field: a request that was signed for another server would pass.
function assertBindsToServer(factory: string, requiredComponents: readonly string[], origin: unknown): void {
  if (requiredComponents.includes("host")) {
    const expected = "a list without host, which nothing compares; require @authority and give origin";
    throw optionError(factory, "requiredComponents", expected, requiredComponents);
  }
  const named = requiredComponents.find((name) => name === "@authority" || name === "@target-uri");
  if (named === undefined || origin !== undefined) return;
  const expected = `the origin that callers see, such as "https://pay.example", where ${named} is required`;
  throw optionError(factory, "origin", expected, origin);
}

function resolveTag(factory: string, tag: TagOption | undefined): TagPolicy | undefined {
  if (tag === undefined) return undefined;
  assertKnownOptions(`${factory}: option tag`, tag, ["require", "exclude"]);
  const { require: required, exclude: excluded } = tag;
  if ((required === undefined) === (excluded === undefined)) {
    throw optionError(factory, "tag", "an object with exactly one of require and exclude", tag);
  }
  return {
    require: resolveTags(factory, "require", required),
    exclude: resolveTags(factory, "exclude", excluded),
  };
}

function resolveTags(
  factory: string,
  name: string,
  tags: string | readonly string[] | undefined,
): readonly string[] | undefined {
  if (tags === undefined) return undefined;
  const list: readonly unknown[] = Array.isArray(tags) ? tags : [tags];
  const sound = list.filter(isTag);
  if (list.length === 0 || sound.length !== list.length) {
    throw optionError(factory, `tag.${name}`, "a tag or a list of tags in printable ASCII, none empty", tags);
  }
  return sound;
}

function isTag(value: unknown): value is string {
  return typeof value === "string" && /^[\x20-\x7e]+$/.test(value);
}
