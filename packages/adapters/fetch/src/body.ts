import { withDeadline } from "@countersign/core";

interface Source {
  cancel(): Promise<void>;
}

type Reader = ReadableStreamDefaultReader<Uint8Array>;

/** A body that did not end in time. */
export class BodyLate extends Error {}

/** Reads a stream to its end; gives up over the limit: undefined. Rejects as the stream does; a BodyLate when not ended after `withinMs`. */
export async function readCapped(
  stream: ReadableStream<Uint8Array> | null,
  limitBytes: number,
  withinMs?: number,
): Promise<Buffer | undefined> {
  const reader = stream?.getReader();
  const whole = readPieces(reader, limitBytes);
  if (withinMs === undefined) return whole;
  try {
    return await withDeadline(
      whole,
      withinMs,
      () => new BodyLate(`a body did not end within ${withinMs} ms`),
    );
  } catch (error) {
    giveUp(reader);
    throw error;
  }
}

async function readPieces(reader: Reader | undefined, limitBytes: number): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- a stream is read piece by piece
    const piece = await reader?.read();
    if (piece === undefined || piece.done) return Buffer.concat(chunks);
    bytes += piece.value.length;
    if (bytes > limitBytes) {
      giveUp(reader);
      return undefined;
    }
    chunks.push(piece.value);
  }
}

/** Cancels an unfinished read, without waiting: half of a cloned stream ends with the other half. */
export function giveUp(source: Source | null | undefined): void {
  // A failed stream or a throwing source rejects: unhandled, that would end the process.
  const cancel = async (): Promise<void> => {
    try {
      await source?.cancel();
    } catch {
      // Nobody reads it.
    }
  };
  void cancel();
}
