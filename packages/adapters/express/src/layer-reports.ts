// To a guard Express tells nothing of what its next() leads to: neither a handler's throw, which an error handler of the same route may
// answer with 200, nor a next(). Its layers know; both of its versions run each handler and error handler by a method of their prototype.
import { hooksOfResponse, type ResponseHooks } from "./node-response.ts";
import type { GuardRequest } from "./types.ts";

type Next = (fault?: unknown) => unknown;
type Handle = (this: Layer, req: ExpressRequest, res: object, next: Next) => unknown;
type HandleError = (this: Layer, error: unknown, req: ExpressRequest, res: object, next: Next) => unknown;

interface Stack {
  readonly stack?: readonly Layer[] | undefined;
}

interface Layer {
  readonly handle: Stack & { readonly length: number };
  readonly route?: Stack | undefined;
}

interface ExpressRequest {
  readonly route?: Stack | undefined;
  readonly app?: { readonly _router?: Stack | undefined; readonly router?: Stack | undefined } | undefined;
}

const reporting = new WeakSet();
const adopted = new WeakSet();

/** Makes the layers of the request's app report to the hooks of responses what their handlers do. Does nothing outside of Express. */
export function reportLayers(req: GuardRequest & ExpressRequest): void {
  adopt(req.route);
  // In Express 4 `router` is a getter that throws.
  adopt(req.app?._router ?? req.app?.router);
}

/** Also the routers in it, each of which may be of another copy of Express. One that is mounted later is found when it runs. */
function adopt(owner: Stack | undefined): void {
  if (owner?.stack === undefined || owner.stack.length === 0 || adopted.has(owner)) return;
  adopted.add(owner);
  for (const layer of owner.stack) {
    adoptKind(layer);
    adopt(layer.handle);
    adopt(layer.route);
  }
}

function adoptKind(layer: Layer): void {
  const prototype: object = Object.getPrototypeOf(layer);
  if (reporting.has(prototype)) return;
  reporting.add(prototype);
  for (const name of ["handleRequest", "handle_request"]) wrap(prototype, name, reportingHandle);
  for (const name of ["handleError", "handle_error"]) wrap(prototype, name, reportingHandleError);
}

function wrap<Method>(prototype: object, name: string, reportingMethod: (method: Method) => Method): void {
  const method: unknown = Reflect.get(prototype, name);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- by its name in Express 5 or 4
  if (typeof method === "function") Reflect.set(prototype, name, reportingMethod(method as Method));
}

function reportingHandle(handle: Handle): Handle {
  return function reported(req, res, next) {
    // Before a guard in it can have begun.
    adopt(this.handle);
    adopt(this.route);
    const hooks = hooksOfResponse(res);
    // An error handler is passed over.
    if (hooks === undefined || this.handle.length > 3) {
      handle.call(this, req, res, next);
      return;
    }
    const isHandler = req.route?.stack?.includes(this) === true;
    if (isHandler) hooks.passedOn?.(false);
    const run = (): unknown => handle.call(this, req, res, reportingNext(hooks, next, isHandler));
    if (hooks.start === undefined) run();
    else hooks.start(run);
  };
}

function reportingNext(hooks: ResponseHooks, next: Next, isHandler: boolean): Next {
  let hasPassed = false;
  return (fault) => {
    if (fault && fault !== "route" && fault !== "router") {
      // A middleware that has handed the request on, and then fails, is a time-out: the handler may be at work.
      if (hasPassed && !isHandler) hooks.failedElsewhere?.(fault);
      else hooks.failed?.(fault);
    } else if (isHandler) {
      hooks.passedOn?.(true);
    }
    hasPassed = true;
    return next(fault);
  };
}

function reportingHandleError(handleError: HandleError): HandleError {
  return function reported(error, req, res, next) {
    // Of the handlers' own errors the layer that failed has told; any other is an error of what stands in front of the guard.
    hooksOfResponse(res)?.failedElsewhere?.(error);
    return handleError.call(this, error, req, res, next);
  };
}
