/** The beginning of a body. */
export interface CappedBody {
  readonly bytes: Buffer;
  /** Whether the body has more. */
  readonly truncated: boolean;
}

/**
 * Reads a body up to `limitBytes`, then cancels it. It counts bytes as they are read, so of a compressed answer to `fetch` the
 * decoded ones. Rejects with the error of the stream.
 */
export async function readCapped({ body }: Pick<Response, "body">, limitBytes: number): Promise<CappedBody> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > limitBytes) break;
  }
  return { bytes: Buffer.concat(chunks).subarray(0, limitBytes), truncated: length > limitBytes };
}
