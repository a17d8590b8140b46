import { createHash } from "node:crypto";
import type { NewTask } from "@countersign/idempotency/work";
import { laneOf } from "@countersign/idempotency/work/store";

/**
 * By what a row is found, in hexadecimal: 512 characters can need more bytes than an index takes. The lengths keep two texts apart that are
 * one when joined, and UTF-16 keeps what UTF-8 has no bytes for.
 */
export function digestOf(...texts: readonly string[]): string {
  const hash = createHash("sha256");
  for (const text of texts) hash.update(`${text.length} `).update(text, "utf16le");
  return hash.digest("hex");
}

export function laneDigest(queue: string, task: Pick<NewTask, "id" | "entity">): string {
  return digestOf(queue, laneOf(task));
}
