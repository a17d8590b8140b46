import type { HeaderFields, Replacement } from "@countersign/core/door";
import { replaceOrCut } from "./guard.ts";
import {
  alreadyEnded,
  beginsAnew,
  copyChunk,
  copyHead,
  hookResponse,
  restoreHead,
  soon,
  toPiece,
  type BareResponse,
  type Call,
  type Piece,
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
type Finished = { readonly headers: HeaderFields } | Replacement;

/** What is done with an answer when it is whole. Nothing of it throws or rejects. */
export interface Finishing {
  /** Of the request: an answer to HEAD has no content. */
  readonly method: string | undefined;
  /** How much of a body is kept, in bytes. */
  readonly limitBytes: number;
  /** Asked once, at the first output of the answer: whether it is kept at all. Any other one leaves as it comes. */
  readonly isDue: () => boolean;
  /** Gives the header fields that are added, or what is answered instead. */
  readonly finish: (answer: WholeAnswer) => Promise<Finished>;
  /** Hears of an answer that Node refused to send: it is 500 instead. */
  readonly unsendable: (error: unknown) => void;
}

/**
 * Keeps the answer in the process until it is whole, or over the limit, and lets it out with what `finish` makes of it. Behind what
 * holds an answer back for another reason: the one that was installed first is the last to see it.
 */
export function finishResponse(res: GuardResponse, finishing: Finishing): void {
  hookResponse(res, (below) => new WholeResponse(res, below, finishing));
}

class WholeResponse implements ResponseHooks {
  readonly #res: GuardResponse;
  readonly #finishing: Finishing;
  readonly #below: BareResponse;
  /** `sent`: nothing more is taken of its writer, but Node may still ask for the head. */
  #phase: "waiting" | "keeping" | "finishing" | "passing" | "sent" = "waiting";
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** At the first output: later changes do not count, as with Node, except to an error. */
  #status: number | undefined;

  constructor(res: GuardResponse, below: BareResponse, finishing: Finishing) {
    this.#res = res;
    this.#finishing = finishing;
    this.#below = below;
  }

  // The head leaves with the body.
  flushHeaders(): void {
    if (this.#leaves() || this.#phase === "sent") this.#below.flushHeaders();
  }

  writeHead(head: readonly unknown[]): void {
    const status = Number(head[0]);
    // Node's own call when it sends the head, or an argument that only Node should refuse.
    if (this.#phase === "sent" || !(status >= 100 && status <= 999) || this.#leaves()) {
      this.#below.writeHead(head);
    } else if (this.#phase === "keeping") {
      takeHead(this.#res, head);
      this.#begin();
    }
  }

  write(...call: Call): boolean {
    if (this.#leaves()) return this.#below.write(...call);
    const piece = toPiece(...call);
    if (this.#phase !== "keeping") return this.#refuse(piece, "ERR_STREAM_WRITE_AFTER_END");
    this.#keep(piece);
    soon(piece.callback);
    if (!this.#isOver) return true;
    // Its writer may go on when the other answer has left, where nothing reads any more.
    this.#res.once("finish", () => this.#res.emit("drain"));
    void this.#finish(undefined);
    return false;
  }

  end(...call: Call): void {
    if (this.#leaves()) {
      this.#below.end(...call);
      return;
    }
    const piece = toPiece(...call);
    if (this.#phase !== "keeping") {
      this.#refuse(piece, "ERR_STREAM_ALREADY_FINISHED");
      return;
    }
    if (piece.chunk === undefined || piece.chunk === null) this.#begin();
    else this.#keep(piece);
    void this.#finish(piece.callback);
  }

  destroy(error: Error | undefined): void {
    this.#phase = "sent";
    this.#chunks = [];
    this.#below.destroy(error);
  }

  get #isOver(): boolean {
    return this.#bytes > this.#finishing.limitBytes;
  }

  /** Whether the answer leaves as it comes, which its first output decides. */
  #leaves(): boolean {
    if (this.#phase === "waiting") this.#phase = this.#finishing.isDue() ? "keeping" : "passing";
    return this.#phase === "passing";
  }

  // Who writes an answer that is too large does not know that another one has taken its place.
  #refuse({ callback }: Piece, code: string): boolean {
    soon(callback, this.#isOver ? undefined : alreadyEnded(code));
    return this.#isOver;
  }

  #begin(): void {
    if (!beginsAnew(this.#res, this.#status)) return;
    this.#status = this.#res.statusCode;
    this.#chunks = [];
    this.#bytes = 0;
  }

  #keep({ chunk, encoding }: Piece): void {
    const copy = copyChunk(chunk);
    this.#begin();
    if (!this.#hasContent()) return;
    const bytes = typeof copy === "string" ? Buffer.from(copy, encoding) : copy;
    this.#bytes += bytes.length;
    if (this.#isOver) this.#chunks = [];
    else this.#chunks.push(bytes);
  }

  // RFC 9110 section 6.4.1: what Node does not send.
  #hasContent(): boolean {
    return this.#finishing.method !== "HEAD" && this.#status !== 204 && this.#status !== 304;
  }

  async #finish(callback: Piece["callback"]): Promise<void> {
    this.#phase = "finishing";
    const { finish, unsendable } = this.#finishing;
    const body = this.#isOver ? undefined : Buffer.concat(this.#chunks);
    const head = copyHead(this.#res);
    const finished = await finish({ status: head.statusCode, rawHeaders: rawHeadersOf(this.#res), body });
    // The app, or the client, has given it up meanwhile.
    if (this.#res.destroyed || this.#phase !== "finishing") return;
    this.#phase = "sent";
    try {
      // Whoever has changed the head behind the end comes too late, as with Node: it is another one than was signed.
      restoreHead(this.#res, head);
      this.#send(finished, body, callback);
    } catch (error) {
      unsendable(error);
      replaceOrCut(this.#res, () => this.#send({ status: 500 }, undefined, callback));
    }
  }

  #send(finished: Finished, body: Buffer | undefined, callback: Piece["callback"]): void {
    if (!("headers" in finished)) {
      this.#below.end(this.#below.replaceHead(finished), undefined, callback);
      return;
    }
    for (const [name, value] of Object.entries(finished.headers)) {
      if (value !== undefined) this.#res.setHeader(name, value);
    }
    this.#below.end(body ?? "", undefined, callback);
  }
}

/** What `writeHead(status, message?, fields?)` says, put into the response as setHeader() would. */
function takeHead(res: GuardResponse, [status, ...rest]: readonly unknown[]): void {
  res.statusCode = Math.trunc(Number(status));
  if (typeof rest[0] === "string") [res.statusMessage] = rest;
  const named = new Set<string>();
  for (const [name, value] of fieldsOfHead(rest)) {
    const lines = linesOf(name, value).filter((_, index) => index % 2 === 1);
    if (named.has(name.toLowerCase())) res.appendHeader(name, lines);
    else if (value !== undefined) res.setHeader(name, Array.isArray(value) ? lines : lines.join());
    named.add(name.toLowerCase());
  }
}

function rawHeadersOf(res: GuardResponse): readonly string[] {
  return res.getHeaderNames().flatMap((name) => linesOf(name, res.getHeader(name)));
}

/** The lines of a header field, names and values by turns. */
export function linesOf(name: string, value: unknown): readonly string[] {
  const lines: readonly unknown[] = Array.isArray(value) ? value : [value];
  return lines.flatMap((line) =>
    typeof line === "string" || typeof line === "number" ? [name, String(line)] : [],
  );
}

/** The fields that `writeHead(status, message?, fields?)` sets, of its arguments behind the status. */
export function fieldsOfHead([message, fields]: readonly unknown[]): readonly (readonly [
  name: string,
  value: unknown,
])[] {
  return pairsOf(typeof message === "string" ? fields : (message ?? fields));
}

// Node takes { name: value }, [name, value, …] and [[name, value], …].
function pairsOf(fields: unknown): readonly (readonly [name: string, value: unknown])[] {
  if (!Array.isArray(fields)) return Object.entries(fields ?? {});
  if (fields.every((field) => Array.isArray(field))) {
    return fields.map(([name, value]: readonly unknown[]) => [String(name), value]);
  }
  return fields.flatMap((name: unknown, index) =>
    index % 2 === 0 ? [[String(name), fields[index + 1] as unknown] as const] : [],
  );
}
