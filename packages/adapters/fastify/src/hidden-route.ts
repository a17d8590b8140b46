import type { WarnOnce } from "@countersign/core/internal";
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

/** Handles a hidden route's errors: Fastify's own name no other route than an unknown path's, `undefined`. */
export function asUnknownRoute(url: string) {
  return (error: FastifyError, request: FastifyRequest, reply: FastifyReply): void => {
    if (error.code === "FST_ERR_HANDLER_TIMEOUT") {
      error.message = error.message.replace(
        ` on route '${request.routeOptions.url ?? url}'`,
        " on route 'undefined'",
      );
    }
    // Goes to the app's handler.
    void reply.send(error);
  };
}

/** An unknown route runs these before or with its 404; callNotFound() leaves them out. */
const hookNames = ["onRequest", "preParsing", "preValidation", "onSend"] as const;

/** Warns once of what tells the hidden route from an unknown one. When all is registered: a 404 may come last. */
export function tellUnhidden(fastify: FastifyInstance, url: string, warnOnce: WarnOnce): undefined {
  const differences = [...timeoutOf(fastify), ...notFoundOf(fastify, url), ...catchAllOf(fastify, url)];
  if (differences.length === 0) return;
  const message = `a hidden webhook can be told from an unknown route: ${differences.join("; ")}`;
  warnOnce({ code: "webhook-not-hidden", message });
}

function timeoutOf({ initialConfig }: FastifyInstance): readonly string[] {
  const timeoutMs: unknown = Reflect.get(initialConfig, "handlerTimeout");
  if (typeof timeoutMs !== "number" || timeoutMs === 0) return [];
  return [`a check that takes longer than handlerTimeout (${timeoutMs} ms) is 503, where others are 404`];
}

/** Only Fastify's own symbols tell; a version without them is not inspected. */
function notFoundOf(fastify: FastifyInstance, url: string): readonly string[] {
  const { router } = Object(internal(fastify, "fastify.404"));
  const found: unknown = router?.find?.("POST", fastify.prefix + url)?.store;
  const own = internal(fastify, "fastify.404ContextKey");
  if (found === undefined || own === undefined) return [];
  if (found !== own) {
    return ["the 404 of the paths beside it is of another prefix; register the plugin where that one is set"];
  }
  const hooks = internal(fastify, "fastify.hooks");
  return hookNames
    .filter((name) => countOf(found, name) !== countOf(hooks, name))
    .map(
      (name) => `an unknown route has other ${name} hooks; give setNotFoundHandler() its own as preHandler`,
    );
}

/** The app's route for a path beside the hidden one: an unknown path never gets its 404. */
function catchAllOf(fastify: FastifyInstance, url: string): readonly string[] {
  // A pattern would find itself.
  if (/[:*]/.test(url)) return [];
  const beside = `${fastify.prefix}${url}-`;
  const methods = fastify.supportedMethods.filter((method) => takes(fastify, method, beside));
  if (methods.length === 0) return [];
  return [
    `a route of the app's, such as one for "/*", takes ${methods.join(", ")} of unknown paths beside it`,
  ];
}

function takes(fastify: FastifyInstance, method: string, url: string): boolean {
  const route: unknown = fastify.findRoute({ method, url });
  return typeof route === "object" && route !== null;
}

function countOf(hooks: unknown, name: string): number {
  const list: unknown = Object(hooks)[name];
  return Array.isArray(list) ? list.length : 0;
}

/** Fastify's value under a symbol with this description; undefined in a version without it. */
export function internal(fastify: object, description: string): unknown {
  for (
    let owner: unknown = fastify;
    typeof owner === "object" && owner !== null;
    owner = Object.getPrototypeOf(owner)
  ) {
    const symbol = Object.getOwnPropertySymbols(owner).find(
      (candidate) => candidate.description === description,
    );
    if (symbol !== undefined) return Reflect.get(fastify, symbol);
  }
  return undefined;
}
