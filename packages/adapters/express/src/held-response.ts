import type { HeaderFields, Replacement } from "@countersign/core/internal";
import type { AnswerDecider, WholeAnswer } from "./answer-decider.ts";
import { replaceOrCut } from "./guard.ts";
import {
  alreadyEnded,
  beginsAnew,
  copyChunk,
  copyHead,
  hookResponse,
  isDeserted,
  isWrapped,
  onFailedPipe,
  onStoppedPipe,
  replaceHead,
  restoreHead,
  soon,
  toPiece,
  type Call,
  type Piece,
  type ResponseHead,
  type ResponseHooks,
} from "./node-response.ts";
import { reportLayers } from "./layer-reports.ts";
import { reportExceptions } from "./nest-exceptions.ts";
import { rawHeadersOf } from "./raw-headers.ts";
import type { GuardResponse } from "./types.ts";

const usualLimitBytes = 1_048_576;

/**
 * I4: holds the handler's answer back until `decide` has resolved, be it by `end`, writes, a pipe or an error handler. Until then
 * `headersSent` is false: an error handler can still replace a begun 2xx. Of several deciders of one response the first decides last.
 */
export function holdResponse(res: GuardResponse, decider: AnswerDecider): void {
  hookResponse(res, (below) => new HeldResponse(res, below, decider));
  if (decider.failed === undefined) return;
  reportLayers(res.req);
  reportExceptions(res.req);
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
  /** As a middleware that wraps the response wrote it. */
  #wrappedHead: ResponseHead | undefined;
  #isMixed = false;
  #length: unknown;
  #pieces: Piece[] = [];
  #bytes = 0;
  #last: Piece | undefined;

  constructor(res: GuardResponse, below: ResponseHooks, decider: AnswerDecider) {
    this.#res = res;
    this.#decider = decider;
    this.#below = below;
    this.#namesBefore = res.getHeaderNames();
    if (decider.pipeFailed !== undefined) onFailedPipe(res, () => decider.pipeFailed?.(res.statusCode));
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
      if (isWrapped(this.#res)) this.#wrappedHead ??= copyHead(this.#res);
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
      this.#decider.respondedLate?.(this.#res.statusCode);
      soon(piece.callback);
    } else if (this.#hasEnded()) {
      this.#decider.respondedLate?.(this.#res.statusCode);
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

  start(handler: () => void): void {
    const further = (): void => (this.#below.start === undefined ? handler() : this.#below.start(handler));
    if (this.#decider.start === undefined) further();
    else this.#decider.start(further);
  }

  failed(error: unknown): void {
    // After a whole response a throw changes nothing.
    if (this.#last !== undefined) return;
    this.#decider.failed?.(error, this.#begun);
    this.#below.failed?.(error);
  }

  failedElsewhere(error: unknown): void {
    if (this.#last !== undefined) return;
    this.#decider.failedElsewhere?.(error);
    this.#below.failedElsewhere?.(error);
  }

  failedSomewhere(error: unknown): void {
    if (this.#last !== undefined) return;
    this.#decider.failedSomewhere?.(error, this.#begun);
    this.#below.failedSomewhere?.(error);
  }

  neverBegan(): void {
    this.#decider.neverBegan?.();
    this.#below.neverBegan?.();
  }

  passedOn(hasPassed: boolean): void {
    this.#decider.passedOn?.(hasPassed);
    this.#below.passedOn?.(hasPassed);
  }

  get #begun(): number | undefined {
    return this.#phase === "holding" ? this.#status : undefined;
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
    if (this.#status !== undefined) this.#giveWay();
    this.#status = this.#res.statusCode;
    this.#decider.responseBegun?.();
    this.#length = this.#res.getHeader("content-length");
    this.#pieces = [];
    this.#bytes = 0;
    this.#explicitHead = undefined;
  }

  /** Another answer comes in place of the begun one. */
  #giveWay(): void {
    const res = this.#res;
    // The client would wait for the rest of that length.
    if (res.getHeader("content-length") === this.#length) res.removeHeader("content-length");
    if (this.#status !== undefined) this.#decider.responseFailed?.(this.#status);
    if (this.#wrappedHead === undefined) return;
    this.#isMixed = true;
    // A middleware may send the whole of a begun success later, and drop what comes in its place.
    if (isSuccess(this.#wrappedHead.statusCode)) res.statusCode = 500;
    this.#wrappedHead = undefined;
  }

  /** Too much to keep. By default a failure may leave while its handler goes on; a 2xx, 3xx or 409 has to be decided first. */
  #overflow(): boolean {
    const { statusCode } = this.#res;
    const isDecided = statusCode === 409 || isSuccess(statusCode);
    if (isDecided || this.#isMixed || this.#decider.limitBytes !== undefined) void this.#decide();
    else this.#flush();
    return this.#phase !== "deciding" && !this.#res.writableNeedDrain;
  }

  async #decide(): Promise<void> {
    const streaming = this.#phase === "passing";
    this.#phase = "deciding";
    this.#decided = true;
    if (this.#wrappedHead !== undefined && !streaming) restoreHead(this.#res, this.#wrappedHead);
    const answer = (): WholeAnswer => this.#answer(streaming);
    const asked = this.#decider.decide(this.#res.statusCode, answer, isDeserted(this.#res));
    const head = streaming ? undefined : copyHead(this.#res);
    const decision = await asked;
    try {
      // After its answer a handler's throw makes Express write another head.
      if (head !== undefined) restoreHead(this.#res, head);
      if (streaming) this.#deliver({});
      else if (decision !== undefined && "status" in decision) this.#replace(decision);
      else if (this.#isMixed) this.#replace({ status: this.#res.statusCode });
      else this.#deliver(decision?.headers ?? {});
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

/** 3xx too: Post/Redirect/Get responds by a redirect after the effect. */
function isSuccess(status: number): boolean {
  return status >= 200 && status < 400;
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
