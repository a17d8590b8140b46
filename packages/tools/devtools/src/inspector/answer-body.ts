import type { ServerResponse } from "node:http";
import { types } from "node:util";
import { marginBytes } from "../loopback/masking.ts";

// Enough for problem details and for the answers of these packages.
export const answerLimitBytes = 8_192;

/** The first bytes of an answer as they leave. Made for each request while an inspector runs. */
export class AnswerBody {
  bytes = 0;
  readonly #parts: Buffer[] = [];
  #kept = 0;

  constructor(res: ServerResponse) {
    // oxlint-disable-next-line typescript/unbound-method -- applied to this very response below
    const { write, end } = res;
    res.write = (...call: unknown[]) => {
      this.#add(call);
      return Boolean(Reflect.apply(write, res, call));
    };
    res.end = (...call: unknown[]) => {
      this.#add(call);
      Reflect.apply(end, res, call);
      return res;
    };
  }

  /** More than is shown, by the margin of masking. */
  get body(): Buffer {
    return Buffer.concat(this.#parts);
  }

  #add([chunk, encoding]: readonly unknown[]): void {
    const bytes = bytesOf(chunk, encoding);
    if (bytes === undefined) return;
    this.bytes += bytes.length;
    const rest = answerLimitBytes + marginBytes - this.#kept;
    if (rest <= 0) return;
    // A copy: the app may write into its buffer again.
    const part = Buffer.from(bytes.subarray(0, rest));
    this.#parts.push(part);
    this.#kept += part.length;
  }
}

function bytesOf(chunk: unknown, encoding: unknown): Uint8Array | undefined {
  if (types.isUint8Array(chunk)) return chunk;
  if (typeof chunk !== "string") return undefined;
  return Buffer.from(chunk, typeof encoding === "string" && Buffer.isEncoding(encoding) ? encoding : "utf8");
}
