import { type ReceivedRequest } from "@countersign/core";
import { createWarnOnce, optionError, type OptionOwner } from "@countersign/core/door";
import {
  assertComputable,
  componentText,
  derivedComponents,
  parseComponentIdentifier,
  type ComponentIdentifier,
} from "@countersign/http-message-signatures/door";
import { defaultComponents, type SignatureProfile } from "@countersign/http-message-signatures";

/** Reads the option `requiredComponents`. Throws an OptionError. */
export function readRequiredComponents(
  given: unknown = defaultComponents,
  owner: OptionOwner,
  name: string,
): readonly string[] {
  const components = readComponents(given, owner, name);
  if (components.some((component) => component.name === "host")) {
    const expected = "a list without host, which nothing compares; require @authority and give origin";
    throw optionError(owner, name, expected, given);
  }
  return components.map(componentText);
}

/** Reads the option `forbiddenComponents`. Throws an OptionError. */
export function readForbiddenComponents(given: unknown, owner: OptionOwner, name: string): readonly string[] {
  return readComponents(given, owner, name).map(componentText);
}

/**
 * Refuses required components that no request can have, or that are forbidden too, and a server's name without origin: the value
 * would come from the caller's own Host field, and a request that was signed for another server would pass. Throws an OptionError.
 */
export function assertComponents(
  owner: OptionOwner,
  {
    requiredComponents,
    forbiddenComponents = [],
    fieldTypes,
    origin,
  }: SignatureProfile & { readonly origin: object | undefined },
): void {
  for (const required of requiredComponents) {
    const component = parseComponentIdentifier(required);
    try {
      assertComputable([component], undefined, fieldTypes);
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
}

// Methods that change nothing (RFC 9110 section 9.2.1).
const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 * Returns what warns once, at the first request that may change something, of a policy that lets a signature leave out its method, its
 * path or its body: whoever is between can exchange that part. Undefined where a policy lets none of them.
 */
export function coverageWarner({
  requiredComponents,
  allowUnsignedBody,
}: Pick<SignatureProfile, "requiredComponents"> & {
  readonly allowUnsignedBody: boolean;
}): ((request: ReceivedRequest) => void) | undefined {
  const names = new Set(requiredComponents.map((text) => parseComponentIdentifier(text).name));
  // The target URI holds the path, RFC 9421 section 2.2.2.
  const coversPath = ["@path", "@target-uri", "@request-target"].some((name) => names.has(name));
  const left = [
    ...(names.has("@method") ? [] : ["its method"]),
    ...(coversPath ? [] : ["its path"]),
    ...(allowUnsignedBody ? ["its body"] : []),
  ];
  if (left.length === 0) return undefined;
  const warnOnce = createWarnOnce("httpSignatureVerify");
  const message =
    `the options take a request whose signature does not cover ${left.join(" and ")}, which can be exchanged on the way; ` +
    "leave requiredComponents and allowUnsignedBody at their defaults";
  return (request) => {
    if (safeMethods.has(request.method)) return;
    warnOnce({ code: "signature-covers-little", message, req: request });
  };
}

function readComponents(given: unknown, owner: OptionOwner, name: string): readonly ComponentIdentifier[] {
  if (!Array.isArray(given) || given.length === 0) {
    throw optionError(owner, name, "a list of at least one component", given);
  }
  // Array.from visits the holes of a sparse array too.
  return Array.from(given, (component: unknown) => readComponent(component, owner, name));
}

function readComponent(text: unknown, owner: OptionOwner, name: string): ComponentIdentifier {
  const component = typeof text === "string" ? parsed(text) : undefined;
  if (
    component !== undefined &&
    (component.name.startsWith("@")
      ? requestComponents.includes(component.name)
      : /^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(component.name))
  ) {
    return component;
  }
  const expected = `lower-case field names or ${requestComponents.join(", ")}, or serialised identifiers`;
  throw optionError(owner, name, expected, text);
}

const requestComponents: readonly string[] = [...derivedComponents, "@query-param"];

function parsed(text: string): ComponentIdentifier | undefined {
  try {
    return parseComponentIdentifier(text);
  } catch {
    return undefined;
  }
}
