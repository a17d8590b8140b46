import { subscribe } from "node:diagnostics_channel";
import { memberOf } from "../command-io.ts";

/** A step that reads the parsed body before any parser has run. */
export interface EarlyHook {
  readonly name: string;
  readonly step: string;
  /** Undefined for a step of a whole scope. */
  readonly url: string | undefined;
}

const needsBody = /^(idempotencyHook)Handler$/;
const early: readonly string[] = ["onRequest", "preParsing"];

/** Collects the early hooks of every Fastify app made from now on; a channel announces the apps. */
export function earlyHooks(): readonly EarlyHook[] {
  const found: EarlyHook[] = [];
  subscribe("fastify.initialization", (message) => {
    const app = memberOf(message, "fastify");
    const addHook = memberOf(app, "addHook");
    if (typeof app !== "object" || app === null || typeof addHook !== "function") return;
    // Scopes inherit the methods of their app.
    Reflect.set(app, "addHook", function (this: unknown, step: unknown, handler: unknown): unknown {
      note(found, { step, handlers: handler, url: undefined });
      return Reflect.apply(addHook, this, [step, handler]);
    });
    Reflect.apply(addHook, app, ["onRoute", (route: unknown) => noteRoute(found, route)]);
  });
  return found;
}

/** `trustProxy` as given to the app; undefined also if this Fastify does not show it. */
export function trustProxyOf(app: object): unknown {
  const symbol = Object.getOwnPropertySymbols(app).find(
    ({ description }) => description === "fastify.options",
  );
  return symbol === undefined ? undefined : memberOf(Reflect.get(app, symbol), "trustProxy");
}

function noteRoute(found: EarlyHook[], route: unknown): void {
  const url = memberOf(route, "url");
  for (const step of early) {
    note(found, { step, handlers: memberOf(route, step), url: typeof url === "string" ? url : undefined });
  }
}

function note(
  found: EarlyHook[],
  { step, handlers, url }: { step: unknown; handlers: unknown; url: string | undefined },
): void {
  if (typeof step !== "string" || !early.includes(step)) return;
  for (const handler of [handlers].flat()) {
    const name = typeof handler === "function" ? needsBody.exec(handler.name)?.[1] : undefined;
    if (name !== undefined) found.push({ name, step, url });
  }
}
