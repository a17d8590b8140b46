import { parseQueryParams, parseRequestTarget } from "./components.ts";
import type { Parameters } from "./field-scanner.ts";
import { isResponse, type Message } from "./message.ts";
import { identityOf, identityOfText, parseComponentIdentifier } from "./signature-base.ts";

/** The components that cover a derived component: itself, and those whose value contains it (RFC 9421 sections 2.2.2 and 2.2.5). */
export const coveringComponents: ReadonlyMap<string, readonly string[]> = new Map([
  ["@authority", ["@authority", "@target-uri"]],
  ["@path", ["@path", "@request-target", "@target-uri"]],
  ["@query", ["@query", "@request-target", "@target-uri"]],
  ["@scheme", ["@scheme", "@target-uri"]],
]);

/**
 * True if a signature covers a required component of a message: by the component itself, by one that contains it, or a query by all its
 * parameters. `covered` has the identities of its components. A response covers parts of its request by `req` alone.
 */
export function isCovered(required: string, covered: ReadonlySet<string>, message: Message): boolean {
  if (covered.has(identityOfText(required))) return true;
  const { name, parameters } = parseComponentIdentifier(required);
  const request = isResponse(message) ? message.request : message;
  if (!name.startsWith("@") || request === undefined) return false;
  const source: Parameters = new Map([...parameters].filter(([parameter]) => parameter === "req"));
  if (isContained(name, covered, source)) return true;
  if (name === "@query") return coversEachParam(parseRequestTarget(request.target).query, covered, source);
  const param = parameters.get("name");
  if (param?.type !== "string" || !isContained("@query", covered, source)) return false;
  // The whole query may lack the parameter, or have it twice: then it does not say what the profile requires.
  return parseQueryParams(parseRequestTarget(request.target).query).get(param.value) !== undefined;
}

/** True if the components of a request's signature cover its query. `covered` has the identities of the components. */
export function coversQuery(query: string, covered: ReadonlySet<string>): boolean {
  return isContained("@query", covered, noParameters) || coversEachParam(query, covered, noParameters);
}

const noParameters: Parameters = new Map();

function isContained(name: string, covered: ReadonlySet<string>, source: Parameters): boolean {
  const covering = coveringComponents.get(name) ?? [];
  return covering.some((each) => covered.has(identityOf({ name: each, parameters: source })));
}

/** True if each parameter of the query is there once, and is covered. An empty pair is a parameter to some parsers, and has no name. */
function coversEachParam(
  query: string | undefined,
  covered: ReadonlySet<string>,
  source: Parameters,
): boolean {
  const coversParams = [...covered].some((identity) => identity.startsWith('"@query-param"'));
  if (query === undefined || !coversParams || /[?&](?:&|$)/.test(query)) return false;
  return [...parseQueryParams(query)].every(([name, value]) => {
    const parameters: Parameters = new Map([["name", { type: "string", value: name }], ...source]);
    return value !== undefined && covered.has(identityOf({ name: "@query-param", parameters }));
  });
}
