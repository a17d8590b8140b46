import type { IncomingMessage, ServerResponse } from "node:http";
import type { ServerHttp2Stream } from "node:http2";

declare global {
  // Express merges this interface into its own Request; it exists here so that the published types need no @types/express.
  namespace Express {
    // oxlint-disable-next-line typescript/no-empty-object-type, typescript/no-empty-interface
    interface Request {}
  }
}

/** A request as Node received it, with the members that Express adds. Express 4 and 5 requests are assignable to it. */
export interface GuardRequest extends IncomingMessage, Express.Request {
  /** The request target before any router stripped its mount path. */
  originalUrl?: string | undefined;
  /** The client address by the app's `trust proxy` setting. */
  ip?: string | undefined;
  /** What a body parser produced. */
  body?: unknown;
}

/** A request with the stream of the compatibility API of node:http2. */
export interface OverHttp2 {
  readonly stream?: ServerHttp2Stream | undefined;
}

/** The response that belongs to a {@link GuardRequest}. */
export type GuardResponse = ServerResponse;

/** Express's `next`. */
export type NextFunction = (error?: unknown) => void;

/** A middleware that Express 4 and 5 accept in `app.use` and in a route. */
export type Middleware = (req: GuardRequest, res: GuardResponse, next: NextFunction) => void;

/** An error-handling middleware that Express 4 and 5 accept. */
export type ErrorMiddleware = (
  error: unknown,
  req: GuardRequest,
  res: GuardResponse,
  next: NextFunction,
) => void;

/** The codes of the refusals of this door; those of a body whose bytes cannot be had are in BodyCode of core. */
export type ExpressCode = "header-lines-dropped" | "host-repeated" | "request-aborted" | "trust-proxy-unsafe";
