// The routes that code shows, and which of them pay or take a webhook with fewer checks than a whole endpoint has.
import { parseSync } from "@swc/core";

/** A node of the syntax tree: `type`, and what else it has. */
type Node = Readonly<Record<string, unknown>>;

interface Route {
  readonly path: string;
  readonly handlers: readonly unknown[];
}

type Definitions = ReadonlyMap<string, unknown>;

const methods = new Set(["get", "post", "put", "patch", "delete", "all", "use", "route", "on"]);
const decorators = new Set(["Get", "Post", "Put", "Patch", "Delete", "All"]);
const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && typeof Object(value).type === "string";

const payoutEndpoints = ["payoutEndpoint", "payoutPlugin", "payoutRoute"];
const webhookEndpoints = ["webhookEndpoint", "webhookPlugin", "webhookRoute"];
// A webhook of another sender: its signature, and each message once.
const checksOfOthers = [
  ["webhookHmac", "idempotencyGuard"],
  ["payloadVerifier", "idempotencyHook"],
];
// The same endpoints made of single middlewares.
const checksOfPayouts = ["ipAllowlist", "httpSignatureVerify", "jsonBody", "idempotencyGuard"];
const checksOfWebhooks = ["httpsOnly", "webhookBasicAuth", "webhookHmac", "receiveWebhook"];

/**
 * Routes of the first of `pieces` that pay, or handle a webhook, with fewer checks than a whole endpoint. The other pieces of the
 * same place say what a name stands for. Throws where code cannot be parsed.
 */
export function weakRoutes(pieces: readonly string[]): readonly string[] {
  const [program, ...others] = pieces.map(parse);
  const definitions = new Map([...others.flatMap(definitionsOf), ...definitionsOf(program)]);
  const routes = routesOf(program, definitions);
  return [...new Set(routes.map(({ path }) => path))].flatMap((path) => {
    const handlers = routes.filter((route) => route.path === path).flatMap((route) => route.handlers);
    const { names, texts } = reached(handlers, definitions);
    const isPayout = /transaction|payout|payment|transfer/i.test(path) || texts.has("acknowledged");
    const isWebhook = /hook/i.test(path);
    if (!isPayout && !isWebhook) return [];
    const hasOne = (all: readonly string[]): boolean => all.some((name) => names.has(name));
    const hasAll = (all: readonly string[]): boolean => all.every((name) => names.has(name));
    const isWhole = isWebhook
      ? hasOne(webhookEndpoints) || checksOfOthers.some(hasAll) || hasAll(checksOfWebhooks)
      : hasOne(payoutEndpoints) || hasAll(checksOfPayouts);
    const isLoosened = [...names].some((name) => name.startsWith("dangerously"));
    return isWhole && !isLoosened ? [] : [path];
  });
}

/** A piece may also be what stands in a class. */
function parse(code: string): unknown {
  const options = { syntax: "typescript", decorators: true, target: "es2022" } as const;
  try {
    return parseSync(code, options);
  } catch {
    return parseSync(`class Shown {\n${code}\n}`, options);
  }
}

function* nodesOf(value: unknown): Generator<Node> {
  if (isNode(value)) yield value;
  if (typeof value !== "object" || value === null) return;
  for (const part of Object.values(value)) yield* nodesOf(part);
}

const nameOf = (node: unknown): string => String(Object(node).value ?? "");

/** What each name stands for: its initialiser, its function, its class. */
function definitionsOf(program: unknown): readonly (readonly [string, unknown])[] {
  return [...nodesOf(program)].flatMap((node): readonly (readonly [string, unknown])[] => {
    if (node["type"] === "VariableDeclarator") return [[nameOf(node["id"]), node["init"]]];
    if (node["type"] === "FunctionDeclaration") return [[nameOf(node["identifier"]), node["body"]]];
    return [];
  });
}

function routesOf(program: unknown, definitions: Definitions): readonly Route[] {
  return [...nodesOf(program)].flatMap((node): readonly Route[] => {
    if (node["type"] === "CallExpression") return routeOfCall(node, definitions);
    if (node["type"] === "KeyValueProperty" && nameOf(node["key"]).startsWith("/"))
      return [{ path: nameOf(node["key"]), handlers: [node["value"]] }];
    // Of a framework with a file for each route: its path is in the comment above.
    if (node["type"] === "ExportDeclaration") return routeOfExport(Object(node["declaration"]));
    // Whoever decorates a method mounts its checks elsewhere in the same code.
    if (node["type"] === "ClassMethod" && decoratedPath(node, definitions) !== undefined)
      return [{ path: decoratedPath(node, definitions) ?? "", handlers: [program] }];
    return [];
  });
}

function routeOfCall(call: Node, definitions: Definitions): readonly Route[] {
  const { type, property, object } = Object(call["callee"]);
  const given = (call["arguments"] as readonly Node[]).map(({ expression }) => expression);
  const [first, ...handlers] = given;
  // Express: route(path).post(...); Fastify: route({ url, handler }).
  const [chained] = Object(Object(object).callee).property?.value === "route" ? Object(object).arguments : [];
  const inChain = chained === undefined ? undefined : pathOf(chained.expression, definitions);
  if (inChain !== undefined) return [{ path: inChain, handlers: given }];
  if (nameOf(property) === "route" && Object(first).type === "ObjectExpression") return routeOfOptions(first);
  if (type !== "MemberExpression" || !methods.has(nameOf(property)) || handlers.length === 0) return [];
  const path = pathOf(first, definitions);
  return path === undefined ? [] : [{ path, handlers }];
}

function routeOfOptions(options: unknown): readonly Route[] {
  const members = Object(options).properties as readonly Node[];
  const url = members.find(({ key }) => nameOf(key) === "url");
  return url === undefined ? [] : [{ path: nameOf(url["value"]), handlers: [options] }];
}

/** The literal; for an address that is no literal the words in it, such as `WEBHOOK_PATH`. */
function pathOf(node: unknown, definitions: Definitions): string | undefined {
  const { type, value } = Object(node);
  if (type === "StringLiteral") return String(value).startsWith("/") ? value : undefined;
  if (type === "Identifier" && definitions.has(value))
    return pathOf(definitions.get(value), definitions) ?? value;
  if (type === "Identifier") return value === "path" ? "webhook path" : value;
  if (type !== "CallExpression") return undefined;
  return [...nodesOf(node)].map(nameOf).find((word) => /path/i.test(word));
}

function routeOfExport(declaration: Node): readonly Route[] {
  const declared = (declaration["declarations"] as readonly Node[] | undefined) ?? [declaration];
  return declared
    .filter((one) => /^(POST|PUT|PATCH)$/.test(nameOf(one["id"] ?? one["identifier"])))
    .map((one) => ({ path: "payout or transaction of a file", handlers: [one] }));
}

function decoratedPath(method: Node, definitions: Definitions): string | undefined {
  const { decorators: all } = Object(method["function"]);
  for (const { expression } of (all ?? []) as readonly { expression: Node }[]) {
    if (!decorators.has(nameOf(expression["callee"]))) continue;
    const [first] = expression["arguments"] as readonly Node[];
    const { type, value } = Object(first?.["expression"]);
    return String(type === "Identifier" ? Object(definitions.get(value)).value : value);
  }
  return undefined;
}

/** All names and texts in these nodes, and in what their names stand for. */
function reached(
  nodes: readonly unknown[],
  definitions: Definitions,
): { readonly names: ReadonlySet<string>; readonly texts: ReadonlySet<string> } {
  const names = new Set<string>();
  const texts = new Set<string>();
  const waiting = [...nodes];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const node of nodesOf(next)) {
      const name = nameOf(node);
      if (node["type"] === "StringLiteral") texts.add(name);
      if (node["type"] !== "Identifier" || names.has(name)) continue;
      names.add(name);
      const meant = definitions.get(name);
      if (isNode(meant)) waiting.push(meant);
    }
  }
  return { names, texts };
}
