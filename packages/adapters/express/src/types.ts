import type { IncomingMessage, ServerResponse } from "node:http";
import type { ServerHttp2Stream } from "node:http2";

declare global {
  // Express merges this interface into its own Request; declared here so that the published types need no @types/express.
  namespace Express {
    // oxlint-disable-next-line typescript/no-empty-object-type, typescript/no-empty-interface
    interface Request {}
  }
}

/** Node's request with the members that Express adds. Express 4 and 5 requests are assignable to it. */
export interface GuardRequest extends IncomingMessage, Express.Request {
  /** The target before any router stripped its mount path. */
  originalUrl?: string | undefined;
  /** The client's address by the app's `trust proxy`. */
  ip?: string | undefined;
  body?: unknown;
}

/** With the stream of node:http2's compatibility API. */
export interface OverHttp2 {
  readonly stream?: ServerHttp2Stream | undefined;
}

export type GuardResponse = ServerResponse;

export type NextFunction = (error?: unknown) => void;

/** Accepted by Express 4 and 5 in `app.use` and in a route. */
export type Middleware = (req: GuardRequest, res: GuardResponse, next: NextFunction) => void;

/** Accepted by Express 4 and 5 as an error handler. */
export type ErrorMiddleware = (
  error: unknown,
  req: GuardRequest,
  res: GuardResponse,
  next: NextFunction,
) => void;

/** The refusal codes of this adapter; core's BodyCode has those of unreadable bodies. */
export type ExpressCode = "header-lines-dropped" | "host-repeated" | "request-aborted" | "trust-proxy-unsafe";
