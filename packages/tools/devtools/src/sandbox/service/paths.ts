import { isUtf8 } from "node:buffer";
import { json, type Request, type RequestHandler, type Router } from "express";
import { refuseOtherMethods } from "../../loopback/index.ts";
import { SandboxError } from "./sandbox-error.ts";

/** Functions return the JSON of the answer. */
export interface PathMethods {
  readonly get?: ((req: Request) => unknown) | undefined;
  /** Gets a JSON body of up to 1 MiB in `req.body`; any other media type is refused. */
  readonly post?: ((req: Request) => unknown) | undefined;
  /** Status of a POST's answer. Default 200. */
  readonly status?: number | undefined;
}

/** Refuses methods that the path does not have. */
export function addPath(router: Router, path: string, { get, post, status = 200 }: PathMethods): void {
  const route = router.route(path);
  if (get !== undefined) route.get(answering(get, 200));
  if (post !== undefined) route.post(requireJson, readJson, answering(post, status));
  const allowed = [get && "GET, HEAD", post && "POST"].filter((methods) => methods !== undefined);
  route.all(refuseOtherMethods(allowed.join(", ")));
}

function answering(work: (req: Request) => unknown, status: number): RequestHandler {
  return async (req, res) => {
    res.status(status).json(await work(req));
  };
}

const requireJson: RequestHandler = (req, _res, next) => {
  // Clients say that a POST without a body is 0 bytes long, and give it no type.
  if (req.get("Content-Length") !== "0" && req.is("application/json") === false)
    next(new SandboxError("media-type-unsupported", "send application/json"));
  else next();
};

// Decoded, the bytes of another encoding would be U+FFFD, also in a password.
const readJson = json({
  limit: 1_048_576,
  inflate: false,
  verify(_req, _res, bytes) {
    if (!isUtf8(bytes)) throw new SandboxError("invalid-request", "the JSON of the body is not in UTF-8");
  },
});

/** Translates errors of the body parser. Its messages can quote the body, and are dropped. */
export function bodyError(status: number): SandboxError | undefined {
  if (status === 413) return new SandboxError("body-too-large", "the body is longer than 1 MiB");
  if (status !== 415) return undefined;
  return new SandboxError("media-type-unsupported", "send application/json, not encoded");
}
