import { bodyRefusals, requestAborted } from "@countersign/core/internal";
import type { GuardRequest } from "./types.ts";

interface Bounds {
  /** By Content-Length. */
  readonly lengthBytes: number | undefined;
  readonly limitBytes: number;
}

/** The bytes of a body, and whether the stream holds them again for a later reader. */
export interface ReadBody {
  readonly bytes: Buffer;
  readonly isPutBack: boolean;
}

/**
 * Reads the whole body, and puts its bytes back into the stream before `end` is emitted: a parser after the check reads exactly them. A
 * stream that somebody else listens to, such as a counter of bytes, ends as usual, because that listener would get the bytes twice. Rejects
 * with a GuardError: 413 over the limit, 400 for another length than Content-Length's or a client that left.
 */
export async function readAndPutBack(
  req: GuardRequest,
  { lengthBytes, limitBytes }: Bounds,
): Promise<ReadBody> {
  const chunks: Buffer[] = [];
  let receivedBytes = 0;
  /** Takes what has arrived. True once that is all; throws over the limit. */
  const takeAll = (): boolean => {
    while (req.readableLength > 0) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a stream without encoding gives buffers
      const chunk = req.read() as Buffer | null;
      if (chunk === null) break;
      receivedBytes += chunk.length;
      if (receivedBytes > limitBytes) throw bodyRefusals.tooLarge(limitBytes);
      chunks.push(chunk);
    }
    return hasReceivedAll(req);
  };
  const finish = (): ReadBody => {
    if (lengthBytes !== undefined && receivedBytes !== lengthBytes)
      throw bodyRefusals.of("body-length-mismatch");
    const [first] = chunks;
    const bytes = chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks);
    const isPutBack = !req.readableEnded && req.listenerCount("data") === 0;
    // In the same turn as the last read(): `end` is emitted a turn later, and only for an empty stream.
    if (isPutBack && bytes.length > 0) req.unshift(bytes);
    return { bytes, isPutBack };
  };
  if (hasReceivedAll(req)) {
    takeAll();
    return finish();
  }
  return new Promise((resolve, reject) => {
    const settle = (work: () => void): void => {
      req.off("readable", read).off("end", read).off("error", abort).off("close", abort);
      work();
    };
    const abort = (cause?: unknown): void => settle(() => reject(bodyRefusals.of(requestAborted, cause)));
    const read = (): void => {
      try {
        if (!takeAll()) return;
        const body = finish();
        settle(() => resolve(body));
      } catch (error) {
        settle(() => reject(error));
      }
    };
    req.on("readable", read).on("end", read).on("error", abort).on("close", abort);
  });
}

/** True once the last byte has arrived, read or not; `readableEnded` and `end` tell only when it was read. */
function hasReceivedAll(req: GuardRequest): boolean {
  // `complete` is true from the start in imitations of a request that serverless platforms make.
  const { _readableState: state }: { readonly _readableState?: { readonly ended?: unknown } } = Object(req);
  return state?.ended === true;
}
