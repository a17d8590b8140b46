import type { HeaderFields, Replacement } from "@countersign/core/door";
import { replaceOrCut } from "./guard.ts";
import {
  alreadyEnded,
  beginsAnew,
  copyChunk,
  copyHead,
  hookResponse,
  isDeserted,
  onStoppedPipe,
  replaceHead,
  reportRoute,
  restoreHead,
  soon,
  toPiece,
  type Call,
  type Piece,
  type ResponseHooks,
} from "./node-response.ts";
import { rawHeadersOf } from "./raw-headers.ts";
import type { GuardResponse } from "./types.ts";

interface WholeAnswer {
  readonly status: number;
  /** Names and values alternating, as they leave, without those that Node adds. */
  readonly rawHeaders: readonly string[];
  /** Undefined when larger than the limit, or without its end yet. */
  readonly body: Buffer | undefined;
}

/** Decides about an answer that is held back. Must neither throw nor reject. */
export interface AnswerDecider {
  /** Whether to hold the answer back; asked once, at its first output. Default: true. */
  isDue?(): boolean;
  /** The most body held back, in bytes. Default 1 MB, beyond which an answer but a 2xx or 409 leaves undecided. */
  readonly limitBytes?: number | undefined;
  /** Returns fields to add, or a replacement; undefined lets the answer out. `hasLeft`: its caller. */
  decide(
    status: number,
    answer: () => WholeAnswer,
    hasLeft: boolean,
  ): Promise<{ readonly headers: HeaderFields } | Replacement | undefined>;
  /** What follows failed before it had ended an answer: an error handler's comes. */
  failed?(error: unknown): void;
  /** The app destroyed the response before the decision. */
  destroyed?(): void;
  /** A pipe to the response has stopped, since the caller has left: perhaps nobody ends it. */
  deserted?(): void;
  /** Node refused to send the answer: it becomes 500. */
  unsendable(error: unknown): void;
}

const usualLimitBytes = 1_048_576;

/**
 * I4: holds the handler's answer back until `decide` has resolved, be it by `end`, writes, a pipe or an error handler. Until then
 * `headersSent` is false: an error handler can still replace a begun 2xx. Of several deciders of one response the first decides last.
 */
export function holdResponse(res: GuardResponse, decider: AnswerDecider): void {
  hookResponse(res, (below) => new HeldResponse(res, below, decider));
  if (decider.failed !== undefined) reportRoute(res.req);
}

class HeldResponse implements ResponseHooks {
  readonly #res: GuardResponse;
  readonly #decider: AnswerDecider;
  readonly #below: ResponseHooks;
  readonly #namesBefore: readonly string[];
  /** `open`: never held back. `passing`: Node gets everything at once. `replaced`: the handler's answer is dropped. */
  #phase: "waiting" | "open" | "holding" | "deciding" | "passing" | "replaced" = "waiting";
  #decided = false;
  /** At the first output: later changes do not count, as with Node, except to an error. */
  #status: number | undefined;
  #explicitHead: readonly unknown[] | undefined;
  #pieces: Piece[] = [];
  #bytes = 0;
  #last: Piece | undefined;

  constructor(res: GuardResponse, below: ResponseHooks, decider: AnswerDecider) {
    this.#res = res;
    this.#decider = decider;
    this.#below = below;
    this.#namesBefore = res.getHeaderNames();
    if (decider.deserted !== undefined) onStoppedPipe(res, () => this.#decided || decider.deserted?.());
  }

  flushHeaders(): void {
    if (this.#isOpen() || this.#phase === "passing") this.#below.flushHeaders();
  }

  writeHead(head: readonly unknown[]): void {
    const status = Number(head[0]);
    const isRefused = !(status >= 100 && status <= 999);
    // An argument that only Node should refuse, or Node's own call when it sends the head.
    if (isRefused || this.#isOpen() || this.#phase === "passing" || this.#phase === "replaced") {
      this.#below.writeHead(head);
    } else if (this.#phase === "holding") {
      this.#res.statusCode = Math.trunc(status);
      this.#begin();
      // Fastify reuses this object for a second answer's fields.
      this.#explicitHead = head.slice(1).map(copyFields);
    }
  }

  write(...call: Call): boolean {
    if (this.#isOpen()) return this.#below.write(...call);
    const piece = toPiece(...call);
    if (this.#phase === "replaced") {
      soon(piece.callback);
      return true;
    }
    if (this.#hasEnded()) {
      soon(piece.callback, alreadyEnded("ERR_STREAM_WRITE_AFTER_END"));
      return false;
    }
    if (this.#phase === "passing") return this.#pass(piece);
    const chunk = copyChunk(piece.chunk);
    this.#begin();
    soon(piece.callback);
    if (!this.#hasContent()) return true;
    this.#pieces.push({ chunk, encoding: piece.encoding, callback: undefined });
    this.#bytes += typeof chunk === "string" ? Buffer.byteLength(chunk, piece.encoding) : chunk.length;
    return this.#phase === "holding" && (this.#bytes <= this.#limitBytes || this.#overflow());
  }

  end(...call: Call): void {
    const piece = toPiece(...call);
    if (this.#isOpen()) {
      this.#below.end(...call);
    } else if (this.#phase === "replaced") {
      soon(piece.callback);
    } else if (this.#hasEnded()) {
      soon(piece.callback, alreadyEnded("ERR_STREAM_ALREADY_FINISHED"));
    } else if (this.#phase === "passing" && this.#decided) {
      this.#finish(piece);
    } else {
      if (piece.chunk !== undefined && piece.chunk !== null) copyChunk(piece.chunk);
      if (this.#phase !== "passing") this.#begin();
      this.#last = piece;
      if (this.#phase !== "deciding") void this.#decide();
    }
  }

  destroy(error: Error | undefined): void {
    // A response destroyed earlier lost its client, for which no handler stops: its retry finds the key owned.
    if (!this.#decided && !isDeserted(this.#res)) {
      this.#decided = true;
      this.#phase = "replaced";
      this.#pieces = [];
      this.#decider.destroyed?.();
    }
    this.#below.destroy(error);
  }

  failed(error: unknown): void {
    // Behind a whole answer a throw changes nothing.
    if (this.#last !== undefined) return;
    this.#decider.failed?.(error);
    this.#below.failed?.(error);
  }

  get #limitBytes(): number {
    return this.#decider.limitBytes ?? usualLimitBytes;
  }

  #isOpen(): boolean {
    if (this.#phase === "waiting") this.#phase = this.#decider.isDue?.() === false ? "open" : "holding";
    return this.#phase === "open";
  }

  // RFC 9110 section 6.4.1: content that Node does not send.
  #hasContent(): boolean {
    return this.#res.req.method !== "HEAD" && this.#status !== 204 && this.#status !== 304;
  }

  // Once passing, Node's word counts: it may have thrown at the end, and an error handler ends in its place. After a real end Node would
  // emit an error that, unhandled, ends the process.
  #hasEnded(): boolean {
    return this.#phase === "passing" ? this.#res.writableEnded : this.#last !== undefined;
  }

  #begin(): void {
    if (this.#phase !== "holding" || !beginsAnew(this.#res, this.#status)) return;
    this.#status = this.#res.statusCode;
    this.#pieces = [];
    this.#bytes = 0;
    this.#explicitHead = undefined;
  }

  /** Too much to keep. By default a failure may leave while its handler goes on; a 2xx or 409 has to be decided first. */
  #overflow(): boolean {
    const { statusCode } = this.#res;
    const isSuccess = statusCode === 409 || (statusCode >= 200 && statusCode < 300);
    if (isSuccess || this.#decider.limitBytes !== undefined) void this.#decide();
    else this.#flush();
    return this.#phase !== "deciding" && !this.#res.writableNeedDrain;
  }

  async #decide(): Promise<void> {
    const streaming = this.#phase === "passing";
    this.#phase = "deciding";
    this.#decided = true;
    const answer = (): WholeAnswer => this.#answer(streaming);
    const asked = this.#decider.decide(this.#res.statusCode, answer, isDeserted(this.#res));
    const head = streaming ? undefined : copyHead(this.#res);
    const decision = await asked;
    try {
      // After its answer a handler's throw makes Express write another head.
      if (head !== undefined) restoreHead(this.#res, head);
      if (decision === undefined || streaming) this.#deliver({});
      else if ("headers" in decision) this.#deliver(decision.headers);
      else this.#replace(decision);
      // For a writer told to wait in write(); Node tells it itself if its own buffer is full by now.
      if (this.#last === undefined && !this.#res.writableNeedDrain) this.#res.emit("drain");
    } catch (error) {
      this.#decider.unsendable(error);
      replaceOrCut(this.#res, () => this.#replace({ status: 500 }));
    }
  }

  #answer(streaming: boolean): WholeAnswer {
    const { statusCode: status } = this.#res;
    const rawHeaders = rawHeadersOf(this.#res, this.#explicitHead ?? []);
    const last = this.#last;
    if (streaming || last === undefined) return { status, rawHeaders, body: undefined };
    const chunks = [...this.#pieces, ...(this.#hasContent() ? [last] : [])].flatMap(bytesOf);
    const body = Buffer.concat(chunks);
    return { status, rawHeaders, body: body.length > this.#limitBytes ? undefined : body };
  }

  #deliver(headers: HeaderFields): void {
    for (const [name, value] of Object.entries(headers)) {
      if (value !== undefined) this.#res.setHeader(name, value);
    }
    this.#flush();
    if (this.#last !== undefined) this.#finish(this.#last);
  }

  #flush(): void {
    this.#phase = "passing";
    const pieces = this.#pieces;
    this.#pieces = [];
    if (this.#explicitHead !== undefined) {
      const head = [this.#res.statusCode, ...this.#explicitHead];
      this.#explicitHead = undefined;
      this.#below.writeHead(head);
    }
    for (const piece of pieces) this.#pass(piece);
  }

  #replace(replacement: Replacement): void {
    this.#pieces = [];
    this.#phase = "replaced";
    if (this.#res.headersSent) {
      // Something wrote past the hooks. A cut connection is retried; half of a 2xx would be believed.
      this.#res.destroy();
      return;
    }
    const chunk = replaceHead(this.#res, replacement, this.#namesBefore);
    this.#finish({ chunk, encoding: "utf8", callback: this.#last?.callback });
  }

  #pass({ chunk, encoding, callback }: Piece): boolean {
    return this.#below.write(chunk, encoding, callback);
  }

  #finish({ chunk, encoding, callback }: Piece): void {
    this.#below.end(chunk, encoding, callback);
  }
}

function copyFields(part: unknown): unknown {
  if (typeof part !== "object" || part === null) return part;
  return Array.isArray(part) ? Array.from<unknown>(part) : { ...part };
}

// Node refuses what is no chunk.
function bytesOf({ chunk, encoding }: Piece): readonly Uint8Array[] {
  if (typeof chunk === "string") return [Buffer.from(chunk, encoding)];
  return chunk instanceof Uint8Array ? [chunk] : [];
}
