import { describe, expect, test } from "@jest/globals";
import { readCapped } from "@countersign/service-client";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** A body of chunks of four bytes without an end, which counts them, and notes when it is cancelled. */
function endless(): { body: ReadableStream<Uint8Array>; seen: { chunks: number; isCancelled: boolean } } {
  const seen = { chunks: 0, isCancelled: false };
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        seen.chunks += 1;
        controller.enqueue(bytes("four"));
      },
      cancel() {
        seen.isCancelled = true;
      },
    },
    { highWaterMark: 0 },
  );
  return { body, seen };
}

describe("readCapped", () => {
  test("reads a body that ends at the limit, and one without content", async () => {
    const whole = await readCapped(new Response("four"), 4);
    expect([whole.bytes.toString(), whole.truncated]).toEqual(["four", false]);
    expect(await readCapped(new Response(null), 4)).toEqual({ bytes: Buffer.alloc(0), truncated: false });
  });

  test("ends with the chunk that exceeds the limit, and cancels the rest", async () => {
    const { body, seen } = endless();
    const { bytes: read, truncated } = await readCapped(new Response(body), 10);
    expect([read.toString(), truncated]).toEqual(["fourfourfo", true]);
    expect(seen).toEqual({ chunks: 3, isCancelled: true });
  });

  test("rejects with the error of the stream", async () => {
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.error(new Error("lost")),
    });
    await expect(readCapped(new Response(body), 10)).rejects.toThrow("lost");
  });
});
