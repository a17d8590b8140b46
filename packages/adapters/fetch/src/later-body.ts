import { createRequestFact, isGuardError, type RequestFact } from "@countersign/core";
import {
  assertStrictJson,
  deliberate,
  parsedJson,
  parseJsonBody,
  type HeaderLines,
} from "@countersign/core/internal";

/** The error by which a body was refused to a handler: the route answers it, as any refusal of a body. */
const refusedBodies: RequestFact<unknown> = createRequestFact();

export function isBodyRefusal(request: Request, error: unknown): boolean {
  return error !== undefined && refusedBodies.get(request) === error;
}

/**
 * Lets a handler read a body that a check has read: `arrayBuffer()`, `blob()`, `bytes()`, `formData()` and `text()` give the checked bytes,
 * as often as asked. `json()` is the strictly parsed value; it rejects with a GuardError: 400 for JSON that two parsers could read
 * differently, 415 for another media type. So does `text()` of a body that claims to be JSON, because frameworks parse that text. `body`,
 * `clone()` and `new Request(request)` fail as for any body that was read.
 */
export function offerBody(request: Request, lines: HeaderLines, bytes: Buffer): void {
  const contentType = request.headers.get("content-type");
  const again = (): Response =>
    new Response(bytes, contentType === null ? {} : { headers: { "Content-Type": contentType } });
  const orRefused = <T>(read: () => T): T => {
    try {
      return read();
    } catch (error) {
      refusedBodies.set(request, error);
      // A handler that has not read its body has not begun its effect.
      throw isGuardError(error) ? deliberate.mark(error) : error;
    }
  };
  const methods = {
    arrayBuffer: () => again().arrayBuffer(),
    blob: () => again().blob(),
    bytes: async () => new Uint8Array(await again().arrayBuffer()),
    formData: () => again().formData(),
    json: async () => orRefused(() => (parsedJson(request) ?? parseJsonBody(lines)).value),
    text: async () => {
      orRefused(() => assertStrictJson(lines));
      return again().text();
    },
  };
  // Some servers' Requests have methods that cannot be assigned.
  for (const [name, value] of Object.entries(methods))
    Object.defineProperty(request, name, { value, configurable: true, writable: true });
}
