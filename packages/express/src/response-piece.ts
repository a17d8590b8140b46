/** What a caller of write or end wants to hear. */
type Callback = (error?: Error | null) => void;

/** The arguments of one write or end. */
export interface Piece {
  readonly chunk: unknown;
  readonly encoding: BufferEncoding | undefined;
  readonly callback: Callback | undefined;
}

// Node takes (chunk, encoding, callback), (chunk, callback) and, for end, (callback).
export function toPiece(chunk: unknown, encoding: unknown, callback: unknown): Piece {
  if (isCallback(chunk)) return { chunk: undefined, encoding: undefined, callback: chunk };
  if (isCallback(encoding)) return { chunk, encoding: undefined, callback: encoding };
  return {
    chunk,
    encoding: typeof encoding === "string" && Buffer.isEncoding(encoding) ? encoding : undefined,
    callback: isCallback(callback) ? callback : undefined,
  };
}

function isCallback(value: unknown): value is Callback {
  return typeof value === "function";
}

// The callback of a write says that its bytes may be overwritten.
export function copyChunk(chunk: unknown): string | Buffer {
  if (typeof chunk === "string") return chunk;
  if (chunk instanceof Uint8Array) return Buffer.from(chunk);
  throw Object.assign(new TypeError("a response takes strings, Buffers and Uint8Arrays"), {
    code: "ERR_INVALID_ARG_TYPE",
  });
}

export function soon(callback: Callback | undefined, error?: Error): void {
  if (callback !== undefined) process.nextTick(callback, error);
}

export function alreadyEnded(code: string): Error {
  return Object.assign(new Error("the response has already been ended"), { code });
}
