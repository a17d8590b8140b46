import type { Replacement } from "@countersign/core/door";
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

/** What decides about an answer that is held back. Neither throws nor rejects. */
export interface AnswerDecider {
  /** Decides what becomes of an answer with this status; undefined lets it out. */
  decide(status: number): Promise<Replacement | undefined>;
  /** Hears that the app has destroyed the response before it was decided. */
  destroyed(): void;
  /** Hears of an answer that Node refused to send in the end. */
  unsendable(error: unknown): void;
}

/** Beyond this much of a body the answer is decided before the handler has ended it. */
const heldBytes = 1_048_576;

/**
 * I4: keeps the handler's answer in the process until `decide` has answered, once, whether it comes by `end`, in
 * writes, from a pipe or from an error handler. Until then `headersSent` is false, which is the truth: an error handler can
 * still answer in place of a 2xx that was begun.
 */
export function holdResponse(res: GuardResponse, decider: AnswerDecider): void {
  hookResponse(res, (below) => new HeldResponse(res, below, decider));
}

class HeldResponse implements ResponseHooks {
  readonly #res: GuardResponse;
  readonly #decider: AnswerDecider;
  readonly #below: BareResponse;
  /** `passing`: Node gets everything at once. `replaced`: the handler's own answer is dropped. */
  #phase: "holding" | "deciding" | "passing" | "replaced" = "holding";
  #decided = false;
  /** The status at the first output: later changes do not count, as with Node, except to an error. */
  #status: number | undefined;
  #explicitHead: readonly unknown[] | undefined;
  #pieces: Piece[] = [];
  #bytes = 0;
  #last: Piece | undefined;

  constructor(res: GuardResponse, below: BareResponse, decider: AnswerDecider) {
    this.#res = res;
    this.#decider = decider;
    this.#below = below;
  }

  flushHeaders(): void {
    if (this.#phase === "passing") this.#below.flushHeaders();
  }

  writeHead(head: readonly unknown[]): void {
    const status = Number(head[0]);
    // Node's own call when it sends the head, or an argument that only Node should refuse.
    if (this.#phase === "passing" || this.#phase === "replaced" || !(status >= 100 && status <= 999)) {
      this.#below.writeHead(head);
    } else if (this.#phase === "holding") {
      this.#res.statusCode = Math.trunc(status);
      this.#begin();
      // Fastify writes the fields of a second answer into the same object.
      this.#explicitHead = head.slice(1).map(copyFields);
    }
  }

  write(...call: Call): boolean {
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
    this.#pieces.push({ chunk, encoding: piece.encoding, callback: undefined });
    this.#bytes += typeof chunk === "string" ? Buffer.byteLength(chunk, piece.encoding) : chunk.length;
    soon(piece.callback);
    return this.#phase === "holding" && (this.#bytes <= heldBytes || this.#overflow());
  }

  end(...call: Call): void {
    const piece = toPiece(...call);
    if (this.#phase === "replaced") {
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
    // What is destroyed already lost its client, for which no handler stops: its retry finds the key owned.
    if (!this.#decided && !this.#res.destroyed) {
      this.#decided = true;
      this.#phase = "replaced";
      this.#pieces = [];
      this.#decider.destroyed();
    }
    this.#below.destroy(error);
  }

  // Once passing, Node's word counts: it may have thrown at the end, and an error handler ends in its place. Behind a real end Node
  // would emit an error that, unheard, is the end of the process.
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

  /** Too much to keep. A failure may leave while its handler goes on; a 2xx, and a 409, has to be decided first. */
  #overflow(): boolean {
    const { statusCode } = this.#res;
    if (statusCode === 409 || (statusCode >= 200 && statusCode < 300)) void this.#decide();
    else this.#flush();
    return this.#phase !== "deciding" && !this.#res.writableNeedDrain;
  }

  async #decide(): Promise<void> {
    const streaming = this.#phase === "passing";
    this.#phase = "deciding";
    this.#decided = true;
    const decision = this.#decider.decide(this.#res.statusCode);
    const head = streaming ? undefined : copyHead(this.#res);
    const replacement = await decision;
    try {
      // A handler that throws after its answer makes Express write another head meanwhile.
      if (head !== undefined) restoreHead(this.#res, head);
      this.#deliver(streaming ? undefined : replacement);
      // A writer that was told to wait in write(); Node tells it itself when its own buffer is full by now.
      if (this.#last === undefined && !this.#res.writableNeedDrain) this.#res.emit("drain");
    } catch (error) {
      this.#decider.unsendable(error);
      replaceOrCut(this.#res, () => this.#replace({ status: 500 }));
    }
  }

  #deliver(replacement: Replacement | undefined): void {
    if (replacement !== undefined) {
      this.#replace(replacement);
      return;
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
      // Somebody wrote past the hooks. A cut connection is retried; half of a 2xx would be believed.
      this.#res.destroy();
      return;
    }
    const chunk = this.#below.replaceHead(replacement);
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
