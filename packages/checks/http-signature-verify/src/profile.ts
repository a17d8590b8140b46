import { type ReceivedRequest } from "@countersign/core";
import {
  createWarnOnce,
  holderOf,
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionRule,
  type OptionTable,
  type ReadOptions,
  type WarnOnce,
} from "@countersign/core/internal";
import {
  defaultComponents,
  signatureAlgorithms,
  type SignatureAlgorithm,
  type SignatureProfile,
} from "@countersign/http-message-signatures";
import {
  componentIdentifiers,
  coveringComponents,
  defaultParameters,
  derivedComponents,
  type ComponentIdentifier,
} from "@countersign/http-message-signatures/internal";

type Optional<Members> = { readonly [Name in keyof Members]?: Members[Name] | undefined };
type FieldTypes = NonNullable<SignatureProfile["fieldTypes"]>;
type SignatureParameter = NonNullable<SignatureProfile["requiredParameters"]>[number];
type TagPolicy = NonNullable<SignatureProfile["tag"]>;

/** Exactly one of the two; values are compared exactly, and none is empty. */
type TagOption =
  | {
      /** The signature's tag must be this one, or one of these. */
      readonly require: string | readonly string[];
      readonly exclude?: undefined;
    }
  | {
      /** The signature's tag must be none of these; a signature without a tag is taken. */
      readonly exclude: string | readonly string[];
      readonly require?: undefined;
    };

/**
 * Options about a signature itself. Defaults: `requiredComponents` `@method`, `@path`, `content-type`, `content-digest`;
 * `requiredParameters` `created`, `expires`, `keyid`, `alg`, `nonce`; `algorithms` `ed25519`; `windowSeconds` 60; `clockSkewSeconds` 30.
 * `@authority` and `@target-uri` need `origin`; `host` is refused. Without a nonce a signature can be replayed until it ends.
 */
export type ProfileOptions = Optional<Omit<SignatureProfile, "tag">> & {
  /** Accepted values of the parameter `tag` (RFC 9421 section 2.3). Default any, and none at all. */
  readonly tag?: TagOption | undefined;
};

/** `expected` describes the texts that `isSound` accepts. */
export function textRule(
  expected: string,
  isSound: (text: string) => boolean,
  fallback?: string,
): OptionRule<string> {
  return option.own(
    (text = fallback, owner, name) => {
      if (typeof text === "string" && isSound(text)) return text;
      throw optionError(owner, name, expected, text);
    },
    fallback === undefined ? "required" : JSON.stringify(fallback),
  );
}

/** A key of a structured field (RFC 8941 section 3.1.2): a label, or the name of a parameter. */
export function isKey(value: unknown): value is string {
  return typeof value === "string" && /^[a-z*][a-z0-9_\-.*]*$/.test(value);
}

const fieldName = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
const tags = option.optional(option.own(readTags));
const tagTable = { require: tags, exclude: tags } satisfies OptionTable<TagOption, unknown>;

export const profileRules = {
  requiredComponents: option.shown(option.own(readRequiredComponents, defaultComponents.join(", "))),
  forbiddenComponents: option.optional(option.own(readComponents)),
  requiredParameters: option.shown(option.own(readRequiredParameters, defaultParameters.join(", "))),
  forbiddenParameters: option.optional(option.own(readForbiddenParameters)),
  label: option.optional(textRule("a lower-case dictionary key", isKey), "any"),
  fieldTypes: option.optional(option.own(readFieldTypes)),
  tag: option.optional(option.own(readTag), "any, or none"),
  algorithms: option.own(readAlgorithms, '["ed25519"]'),
  windowSeconds: option.integer({ min: 1, max: 3600, fallback: 60 }),
  clockSkewSeconds: option.integer({ min: 0, max: 300, fallback: 30 }),
} satisfies OptionTable<ProfileOptions, unknown>;

type ResolvedProfile = ReadOptions<typeof profileRules>;

/** Without `origin` the server's name is the caller's own Host: a request signed for another server would pass. Throws an OptionError. */
function assertConsistent(
  owner: OptionOwner,
  profile: ResolvedProfile & { readonly origin: object | undefined },
): void {
  const { requiredComponents, forbiddenComponents = [], fieldTypes, origin } = profile;
  for (const required of requiredComponents) {
    const component = componentIdentifiers.parse(required);
    try {
      componentIdentifiers.assertComputable([component], undefined, fieldTypes);
    } catch {
      throw optionError(owner, "requiredComponents", "components that a request can have", required);
    }
    if (forbiddenComponents.includes(required) || forbiddenComponents.includes(component.name)) {
      const expected = `components other than ${required}, which is required`;
      throw optionError(owner, "forbiddenComponents", expected, required);
    }
    if (origin === undefined && (component.name === "@authority" || component.name === "@target-uri")) {
      const expected = `the origin that callers see, such as "https://pay.example", where ${required} is required`;
      throw optionError(owner, "origin", expected, origin);
    }
  }
  const { requiredParameters, forbiddenParameters = [] } = profile;
  const both = requiredParameters.find((name) => forbiddenParameters.includes(name));
  if (both === undefined) return;
  throw optionError(owner, "forbiddenParameters", `parameters other than ${both}, which is required`, both);
}

/** {@link assertConsistent}, and that somebody remembers a required nonce. Throws an OptionError. */
export function assertPolicy(
  owner: OptionOwner,
  profile: ResolvedProfile & { readonly origin: object | undefined; readonly nonces: object | undefined },
): void {
  assertConsistent(owner, profile);
  if (!profile.requiredParameters.includes("nonce") || profile.nonces !== undefined) return;
  throw optionError(owner, "nonces", "a NonceStore, for example memoryNonceStore()", profile.nonces);
}

// Methods that change nothing (RFC 9110 section 9.2.1).
const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** Warns once, at the first unsafe request, that method, path or body may be unsigned, so exchangeable; undefined if all are required. */
export function coverageWarner(
  {
    requiredComponents,
    allowUnsignedBody,
  }: {
    readonly requiredComponents: readonly string[];
    readonly allowUnsignedBody: boolean;
  },
  warnOnce: WarnOnce = createWarnOnce("httpSignatureVerify"),
): ((request: ReceivedRequest) => void) | undefined {
  const names = new Set(requiredComponents.map((text) => componentIdentifiers.parse(text).name));
  const coversPath = coveringComponents.get("@path")?.some((name) => names.has(name)) === true;
  const left = [
    ...(names.has("@method") ? [] : ["its method"]),
    ...(coversPath ? [] : ["its path"]),
    ...(allowUnsignedBody ? ["its body"] : []),
  ];
  if (left.length === 0) return undefined;
  const message =
    `the options take a request whose signature does not cover ${left.join(" and ")}, which can be exchanged on the way; ` +
    "leave requiredComponents and allowUnsignedBody at their defaults";
  return (request) => {
    if (safeMethods.has(request.method)) return;
    warnOnce({ code: "signature-covers-little", message, req: request });
  };
}

function readRequiredComponents(
  given: unknown = defaultComponents,
  owner: OptionOwner,
  name: string,
): readonly string[] {
  const components = readComponents(given, owner, name);
  if (!components.some((text) => componentIdentifiers.parse(text).name === "host")) return components;
  const expected = "a list without host, which nothing compares; require @authority and give origin";
  throw optionError(owner, name, expected, given);
}

function readComponents(given: unknown, owner: OptionOwner, name: string): readonly string[] {
  if (!Array.isArray(given) || given.length === 0) {
    throw optionError(owner, name, "a list of at least one component", given);
  }
  // Array.from visits the holes of a sparse array too.
  return Array.from(given, (text: unknown) => {
    const component = typeof text === "string" ? parsed(text) : undefined;
    if (component !== undefined && isOfRequest(component)) return componentIdentifiers.textOf(component);
    const expected = `lower-case field names or ${requestComponents.join(", ")}, or serialised identifiers`;
    throw optionError(owner, name, expected, text);
  });
}

const requestComponents: readonly string[] = [...derivedComponents, "@query-param"];

function isOfRequest({ name }: ComponentIdentifier): boolean {
  return name.startsWith("@") ? requestComponents.includes(name) : fieldName.test(name);
}

function parsed(text: string): ComponentIdentifier | undefined {
  try {
    return componentIdentifiers.parse(text);
  } catch {
    return undefined;
  }
}

/** In the order of `all`; none unless all members are known, each once. */
function subsetOf<Value>(all: readonly Value[], given: unknown): readonly Value[] {
  const list: readonly unknown[] = Array.isArray(given) ? given : [];
  const known = all.filter((one) => list.includes(one));
  return known.length === list.length ? known : [];
}

const parameterNames: readonly SignatureParameter[] = [...defaultParameters, "tag"];

function readRequiredParameters(
  given: unknown = defaultParameters,
  owner: OptionOwner,
  name: string,
): readonly SignatureParameter[] {
  const known = subsetOf(parameterNames, given);
  // A signature without end would need a nonce that is never forgotten.
  const ends = known.includes("created") || known.includes("expires");
  if (ends && known.includes("keyid")) return known;
  const expected = `a list of ${parameterNames.join(", ")}, with keyid, and with created or expires`;
  throw optionError(owner, name, expected, given);
}

function readAlgorithms(
  given: unknown = ["ed25519"],
  owner: OptionOwner,
  name: string,
): readonly SignatureAlgorithm[] {
  const known = subsetOf(signatureAlgorithms, given);
  if (known.length > 0) return known;
  throw optionError(owner, name, `a list of ${signatureAlgorithms.join(", ")}, each once`, given);
}

function readForbiddenParameters(given: unknown, owner: OptionOwner, name: string): readonly string[] {
  const list: readonly unknown[] = Array.isArray(given) ? given : [];
  const sound = list.filter(isKey);
  if (list.length > 0 && sound.length === list.length && !sound.includes("keyid")) return sound;
  throw optionError(owner, name, "a list of lower-case parameter names other than keyid", given);
}

function readFieldTypes(types: unknown, owner: OptionOwner, name: string): FieldTypes {
  const entries = typeof types === "object" && types !== null ? Object.entries(types) : [];
  const known = new Set<unknown>(["dictionary", "item", "list"]);
  const sound = entries.filter(([field, type]) => fieldName.test(field) && known.has(type));
  if (entries.length > 0 && sound.length === entries.length) return Object.freeze(Object.fromEntries(sound));
  const expected = 'an object such as { "x-items": "list" } of "dictionary", "item" and "list"';
  throw optionError(owner, name, expected, types);
}

function readTag(tag: unknown, owner: OptionOwner, name: string): TagPolicy {
  const read = readOptions(holderOf(owner, name), tagTable, tag);
  if ((read.require === undefined) !== (read.exclude === undefined)) return read;
  throw optionError(owner, name, "an object with exactly one of require and exclude", tag);
}

function readTags(given: unknown, owner: OptionOwner, name: string): readonly string[] {
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  const sound = list.filter((tag): tag is string => typeof tag === "string" && /^[\x20-\x7e]+$/.test(tag));
  if (list.length > 0 && sound.length === list.length) return sound;
  throw optionError(owner, name, "a tag or a list of tags in printable ASCII, none empty", given);
}
