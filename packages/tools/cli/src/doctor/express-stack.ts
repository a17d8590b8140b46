import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";

/** A guard of an Express app that needs the body's bytes, and what reads them first. */
export interface MountedGuard {
  readonly name: string;
  /** Undefined after `app.use`, which does not show it. */
  readonly path: string | undefined;
  /** Earlier body parsers that do not keep the bytes. */
  readonly behind: readonly string[];
}

interface Layer {
  readonly handle: unknown;
  readonly route?: { readonly path?: unknown; readonly stack?: unknown } | undefined;
  readonly match?: unknown;
  /** Express 5: mounted on `/`. */
  readonly slash?: unknown;
  /** Express 4. */
  readonly regexp?: { readonly fast_slash?: unknown } | undefined;
}

interface Parser {
  readonly name: string;
  readonly covers: (path: string | undefined) => boolean;
}

const needsBytes =
  /^(payoutEndpoint|webhookEndpoint|httpSignatureVerify|contentDigest|webhookHmac|rawBody)Middleware$/;
const parserNames: ReadonlyMap<string, string> = new Map([
  ["jsonParser", "express.json()"],
  ["urlencodedParser", "express.urlencoded()"],
  ["textParser", "express.text()"],
  ["rawParser", "express.raw()"],
  ["multerMiddleware", "multer"],
]);

/** In the order in which requests meet them. */
export async function mountedGuards(app: object): Promise<readonly MountedGuard[]> {
  const found: MountedGuard[] = [];
  await walk(stackOf(routerOf(app)), { parsers: [], path: undefined, isRoute: false }, found);
  return found;
}

interface Place {
  readonly parsers: readonly Parser[];
  readonly path: string | undefined;
  readonly isRoute: boolean;
}

async function walk(stack: readonly Layer[], place: Place, found: MountedGuard[]): Promise<void> {
  const parsers = [...place.parsers];
  for (const layer of stack) {
    const { route } = layer;
    const children = route === undefined ? stackOf(layer.handle) : stackOf(route);
    const path = typeof route?.path === "string" ? route.path : place.path;
    const below = { parsers, path, isRoute: route !== undefined || place.isRoute };
    const isGroup = route !== undefined || children.length > 0;
    // oxlint-disable-next-line no-await-in-loop -- in the order in which a request meets them
    await (isGroup ? walk(children, below, found) : visit(layer, below, found));
  }
}

async function visit(
  layer: Layer,
  { parsers, path, isRoute }: Place & { readonly parsers: Parser[] },
  found: MountedGuard[],
): Promise<void> {
  const { handle } = layer;
  if (typeof handle !== "function") return;
  const parser = parserNames.get(handle.name);
  if (parser !== undefined) {
    if (await losesBytes(handle))
      parsers.push({ name: parser, covers: isRoute ? () => true : coverageOf(layer) });
    return;
  }
  const name = needsBytes.exec(handle.name)?.[1];
  if (name === undefined) return;
  const behind = parsers.filter(({ covers }) => covers(path)).map((one) => one.name);
  found.push({ name, path, behind: [...new Set(behind)] });
}

function coverageOf(layer: Layer): (path: string | undefined) => boolean {
  // On `/`, or in a route's stack: matches every request that gets here.
  if (layer.slash === true || layer.regexp?.fast_slash === true) return () => true;
  const { match } = layer;
  if (typeof match !== "function") return () => true;
  return (path) => path !== undefined && Boolean(Reflect.apply(match, layer, [path]));
}

const parserTimeMs = 2000;

/** Whether the parser reads a JSON body and, without `verify: captureRawBody`, keeps no bytes. Only it sees this made-up request. */
async function losesBytes(parser: unknown): Promise<boolean> {
  const body = Buffer.from("{}");
  const req = new IncomingMessage(new Socket());
  Object.assign(req, { method: "POST", url: "/" });
  const fields = { "content-type": "application/json", "content-length": String(body.length) };
  for (const [name, value] of Object.entries(fields)) {
    req.headers[name] = value;
    req.rawHeaders.push(name, value);
  }
  req.complete = true;
  req.push(body);
  req.push(null);
  await new Promise<void>((resolve) => {
    setTimeout(resolve, parserTimeMs).unref();
    try {
      if (typeof parser === "function")
        Reflect.apply(parser, undefined, [req, new ServerResponse(req), resolve]);
      else resolve();
    } catch {
      resolve();
    }
  });
  if (!req.readableDidRead) return false;
  return !["rawBody", "body"].some((name) => Buffer.isBuffer(Reflect.get(req, name)));
}

/** Express 4 has `_router`, and throws at `router`. */
function routerOf(app: object): unknown {
  const four: unknown = Reflect.get(app, "_router");
  if (four !== undefined) return four;
  try {
    return Reflect.get(app, "router");
  } catch {
    return undefined;
  }
}

function stackOf(router: unknown): readonly Layer[] {
  if ((typeof router !== "function" && typeof router !== "object") || router === null) return [];
  const stack: unknown = Reflect.get(router, "stack");
  return Array.isArray(stack) ? stack.filter((layer) => isLayer(layer)) : [];
}

function isLayer(value: unknown): value is Layer {
  return typeof value === "object" && value !== null && "handle" in value;
}
