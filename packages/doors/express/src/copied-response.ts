import { hookResponse, toPiece, type BareResponse, type Call, type ResponseHooks } from "./node-response.ts";
import type { GuardResponse } from "./types.ts";
import { fieldsOfHead, linesOf, type WholeAnswer } from "./whole-response.ts";

/** What is done with the copy of an answer. */
export interface Copying {
  /** How much of a body is copied, in bytes. */
  readonly limitBytes: number;
  /** Called with the answer in the turn of its end, before what comes after it. Must not throw. */
  readonly onEnd: (answer: WholeAnswer) => void;
}

/**
 * Copies the answer on its way, which it neither keeps nor changes. Installed after what holds answers back, it is called before that
 * decides.
 */
export function copyResponse(res: GuardResponse, copying: Copying): void {
  hookResponse(res, (below) => new CopiedResponse(res, below, copying));
}

class CopiedResponse implements ResponseHooks {
  readonly #res: GuardResponse;
  readonly #copying: Copying;
  readonly #below: BareResponse;
  #head: readonly unknown[] = [];
  /** At the first output. */
  #status: number | undefined;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #ended = false;

  constructor(res: GuardResponse, below: BareResponse, copying: Copying) {
    this.#res = res;
    this.#copying = copying;
    this.#below = below;
  }

  flushHeaders(): void {
    this.#below.flushHeaders();
  }

  writeHead(head: readonly unknown[]): void {
    this.#below.writeHead(head);
    if (this.#ended) return;
    this.#begin();
    this.#head = head;
  }

  write(...call: Call): boolean {
    if (!this.#ended) {
      this.#begin();
      this.#copy(...call);
    }
    return this.#below.write(...call);
  }

  end(...call: Call): void {
    if (!this.#ended) {
      this.#begin();
      this.#ended = true;
      this.#copy(...call);
      const body = this.#bytes > this.#copying.limitBytes ? undefined : Buffer.concat(this.#chunks);
      this.#copying.onEnd({
        status: this.#status ?? this.#res.statusCode,
        rawHeaders: this.#rawHeaders(),
        body,
      });
    }
    this.#below.end(...call);
  }

  destroy(error: Error | undefined): void {
    this.#chunks = [];
    this.#below.destroy(error);
  }

  // While nothing has left, an error handler that takes over after the first output begins a new answer; any other change of the
  // status comes too late, as with Node.
  #begin(): void {
    const { statusCode, headersSent } = this.#res;
    if (this.#status !== undefined && (headersSent || statusCode === this.#status || statusCode < 400))
      return;
    this.#status = statusCode;
    this.#head = [];
    this.#chunks = [];
    this.#bytes = 0;
  }

  // What is no chunk is refused by who really takes it.
  #copy(...call: Call): void {
    const { chunk, encoding } = toPiece(...call);
    const bytes =
      typeof chunk === "string"
        ? Buffer.from(chunk, encoding)
        : chunk instanceof Uint8Array
          ? Buffer.from(chunk)
          : undefined;
    if (bytes === undefined) return;
    this.#bytes += bytes.length;
    if (this.#bytes <= this.#copying.limitBytes) this.#chunks.push(bytes);
    else this.#chunks = [];
  }

  /** The fields that were set, and behind them those of writeHead(), which take their place. */
  #rawHeaders(): readonly string[] {
    const explicit = fieldsOfHead(this.#head.slice(1));
    const named = new Set(explicit.map(([name]) => name.toLowerCase()));
    const set = this.#res
      .getHeaderNames()
      .filter((name) => !named.has(name))
      .flatMap((name) => linesOf(name, this.#res.getHeader(name)));
    return [...set, ...explicit.flatMap(([name, value]) => linesOf(name, value))];
  }
}
