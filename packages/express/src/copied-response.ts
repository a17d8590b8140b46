import { hookResponse, type OriginalMethods, type ResponseHooks } from "./node-response.ts";
import { toPiece } from "./response-piece.ts";
import type { GuardResponse } from "./types.ts";
import type { WholeAnswer } from "./whole-response.ts";

/** What is done with the copy of an answer. */
export interface Copying {
  /** How much of a body is copied, in bytes. */
  readonly limitBytes: number;
  /** Hears the answer in the turn of its end, before anything behind hears of that. Must not throw. */
  readonly hear: (answer: WholeAnswer) => void;
}

/**
 * Copies the answer on its way, which it neither keeps nor changes. Installed behind what holds answers back, it tells before that
 * decides.
 */
export function copyResponse(res: GuardResponse, copying: Copying): void {
  new CopiedResponse(res, copying).install();
}

class CopiedResponse implements ResponseHooks {
  readonly #res: GuardResponse;
  readonly #copying: Copying;
  #original: OriginalMethods;
  #head: readonly unknown[] = [];
  /** At the first output. */
  #status: number | undefined;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #ended = false;

  constructor(res: GuardResponse, copying: Copying) {
    this.#res = res;
    this.#copying = copying;
    this.#original = res;
  }

  install(): void {
    this.#original = hookResponse(this.#res, this);
  }

  flushHeaders(): void {
    Reflect.apply(this.#original.flushHeaders, this.#res, []);
  }

  writeHead(head: readonly unknown[]): void {
    Reflect.apply(this.#original.writeHead, this.#res, head);
    if (this.#ended) return;
    this.#begin();
    this.#head = head;
  }

  write(...call: readonly [chunk: unknown, encoding: unknown, callback: unknown]): boolean {
    if (!this.#ended) {
      this.#begin();
      this.#copy(...call);
    }
    return Boolean(Reflect.apply(this.#original.write, this.#res, call));
  }

  end(...call: readonly [chunk: unknown, encoding: unknown, callback: unknown]): void {
    if (!this.#ended) {
      this.#begin();
      this.#ended = true;
      this.#copy(...call);
      const body = this.#bytes > this.#copying.limitBytes ? undefined : Buffer.concat(this.#chunks);
      this.#copying.hear({
        status: this.#status ?? this.#res.statusCode,
        rawHeaders: this.#rawHeaders(),
        body,
      });
    }
    Reflect.apply(this.#original.end, this.#res, call);
  }

  destroy(error: Error | undefined): void {
    this.#chunks = [];
    Reflect.apply(this.#original.destroy, this.#res, [error]);
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
  #copy(...call: readonly [chunk: unknown, encoding: unknown, callback: unknown]): void {
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
    const [, message, fields] = this.#head;
    const explicit = pairsOf(typeof message === "string" ? fields : (message ?? fields));
    const named = new Set(explicit.map(([name]) => name.toLowerCase()));
    const set = this.#res
      .getHeaderNames()
      .filter((name) => !named.has(name))
      .flatMap((name) => linesOf(name, this.#res.getHeader(name)));
    return [...set, ...explicit.flatMap(([name, value]) => linesOf(name, value))];
  }
}

function linesOf(name: string, value: unknown): readonly string[] {
  const lines: readonly unknown[] = Array.isArray(value) ? value : [value];
  return lines.flatMap((line) =>
    typeof line === "string" || typeof line === "number" ? [name, String(line)] : [],
  );
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
