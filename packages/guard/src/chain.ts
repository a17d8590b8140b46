import { expectManyProperties } from "./many-properties.ts";
import type { ErrorMiddleware, Middleware, NextFunction } from "./types.ts";

/**
 * Makes one middleware, named `<name>Middleware`, of several that run in order. An error of one of them goes to `onError`,
 * default to the app. One function keeps the types of an inline handler behind it, which an array of handlers loses. For
 * middlewares made by `guard()`: one that throws instead of calling `next` is left to Express.
 */
export function chain(
  name: string,
  middlewares: readonly Middleware[],
  onError?: ErrorMiddleware,
): Middleware {
  const parts = [...middlewares];
  const composed: Middleware = (req, res, next) => {
    let position = 0;
    expectManyProperties(req, "statusMessage");
    expectManyProperties(res, "sendDate");
    const advance: NextFunction = (error) => {
      // As Express: next(null) is no error. Handed out, it would pass over the parts that are left.
      if (error) {
        if (onError === undefined) next(error);
        else onError(error, req, res, next);
        return;
      }
      const part = parts[position++];
      if (part === undefined) next();
      else part(req, res, advance);
    };
    advance();
  };
  return Object.defineProperty(composed, "name", { value: `${name}Middleware` });
}
