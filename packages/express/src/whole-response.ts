import type { HeaderFields, Replacement } from "@countersign/core";
import {
  alreadyEnded,
  copyChunk,
  hookResponse,
  soon,
  toPiece,
  type BareResponse,
  type Call,
  type ResponseHooks,
} from "./node-response.ts";
import type { GuardResponse } from "./types.ts";

/** An answer that has not left yet. */
export interface WholeAnswer {
  readonly status: number;
  /** Names and values by turns, as they leave, but for those that Node adds. */
  readonly rawHeaders: readonly string[];
  /** Undefined where there was more than the limit. */
  readonly body: Buffer | undefined;
}

/** What an answer gets, or what takes its place. */
export type Finished = { readonly headers: HeaderFields } | Replacement;

/** What is done with an answer when it is whole. */
export interface Finishing {
  /** How much of a body is kept, in bytes. */
  readonly limitBytes: number;
  /** Gives the header fields that are added, or what is answered instead. Does not reject. */
  readonly finish: (answer: WholeAnswer) => Promise<Finished>;
}

/**
 * Keeps the answer in the process until it is whole, and lets it out with what `finish` makes of it. Behind what holds an answer back
 * for another reason: the one that was installed first is the last to see it.
 */
export function finishResponse(res: GuardResponse, finishing: Finishing): void {
  hookResponse(res, (below) => new WholeResponse(res, below, finishing));
}

class WholeResponse implements ResponseHooks {
  readonly #res: GuardResponse;
  readonly #finishing: Finishing;
  readonly #below: BareResponse;
  #phase: "keeping" | "finishing" | "passing" = "keeping";
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** At the first output. */
  #status: number | undefined;

  constructor(res: GuardResponse, below: BareResponse, finishing: Finishing) {
    this.#res = res;
    this.#finishing = finishing;
    this.#below = below;
  }

  // The head leaves with the body.
  flushHeaders(): void {
    if (this.#phase === "passing") this.#below.flushHeaders();
  }

  writeHead(head: readonly unknown[]): void {
    const status = Number(head[0]);
    // Node's own call when it sends the head, or an argument that only Node should refuse.
    if (this.#phase === "passing" || !(status >= 100 && status <= 999)) {
      this.#below.writeHead(head);
    } else if (this.#phase === "keeping") takeHead(this.#res, head);
  }

  write(...call: Call): boolean {
    if (this.#phase === "passing") return this.#below.write(...call);
    const { chunk, encoding, callback } = toPiece(...call);
    if (this.#phase !== "keeping") {
      soon(callback, alreadyEnded("ERR_STREAM_WRITE_AFTER_END"));
      return false;
    }
    this.#keep(chunk, encoding);
    soon(callback);
    return true;
  }

  end(...call: Call): void {
    if (this.#phase === "passing") {
      this.#below.end(...call);
      return;
    }
    const { chunk, encoding, callback } = toPiece(...call);
    if (this.#phase !== "keeping") {
      soon(callback, alreadyEnded("ERR_STREAM_ALREADY_FINISHED"));
      return;
    }
    if (chunk !== undefined && chunk !== null) this.#keep(chunk, encoding);
    this.#phase = "finishing";
    void this.#finish(callback);
  }

  destroy(error: Error | undefined): void {
    this.#phase = "passing";
    this.#chunks = [];
    this.#below.destroy(error);
  }

  #keep(chunk: unknown, encoding: BufferEncoding | undefined): void {
    const { statusCode } = this.#res;
    // Nothing has left yet, so an error handler that takes over after the first output begins a new answer.
    if (this.#status !== undefined && this.#status !== statusCode && statusCode >= 400) {
      this.#chunks = [];
      this.#bytes = 0;
    }
    this.#status = statusCode;
    const copy = copyChunk(chunk);
    const bytes = typeof copy === "string" ? Buffer.from(copy, encoding) : copy;
    this.#bytes += bytes.length;
    // What is beyond is counted and forgotten: the answer is another one.
    if (this.#bytes <= this.#finishing.limitBytes) this.#chunks.push(bytes);
    else this.#chunks = [];
  }

  async #finish(callback: ((error?: Error | null) => void) | undefined): Promise<void> {
    const { limitBytes, finish } = this.#finishing;
    const { statusCode: status } = this.#res;
    let body = this.#bytes > limitBytes ? undefined : Buffer.concat(this.#chunks);
    const finished = await finish({ status, rawHeaders: rawHeadersOf(this.#res), body });
    // The app, or the client, has given it up meanwhile.
    if (this.#res.destroyed || this.#phase !== "finishing") return;
    if ("headers" in finished) {
      for (const [name, value] of Object.entries(finished.headers)) {
        if (value !== undefined) this.#res.setHeader(name, value);
      }
    } else body = Buffer.from(this.#below.replaceHead(finished));
    this.#phase = "passing";
    this.#below.end(body ?? "", undefined, callback);
  }
}

/** What `writeHead(status, message?, fields?)` says, put into the response as setHeader() would. */
function takeHead(res: GuardResponse, [status, ...rest]: readonly unknown[]): void {
  res.statusCode = Math.trunc(Number(status));
  const [message, fields] = typeof rest[0] === "string" ? rest : [undefined, rest[0] ?? rest[1]];
  if (typeof message === "string") res.statusMessage = message;
  const pairs = Array.isArray(fields) ? pairsOf(fields) : Object.entries(fields ?? {});
  const named = new Set<string>();
  for (const [name, value] of pairs) {
    if (value === undefined) continue;
    if (named.has(name.toLowerCase())) res.appendHeader(name, value);
    else res.setHeader(name, value);
    named.add(name.toLowerCase());
  }
}

// Node takes [name, value, name, value] and [[name, value], …].
function pairsOf(fields: readonly unknown[]): [string, string][] {
  const flat = fields.flat().map(String);
  return Array.from({ length: flat.length / 2 }, (_, index) => [
    flat[2 * index] ?? "",
    flat[2 * index + 1] ?? "",
  ]);
}

function rawHeadersOf(res: GuardResponse): readonly string[] {
  return res
    .getHeaderNames()
    .flatMap((name) => [res.getHeader(name) ?? []].flat().flatMap((value) => [name, String(value)]));
}
