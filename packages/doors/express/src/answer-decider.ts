import type { HeaderFields, Replacement } from "@countersign/core/door";

export interface WholeAnswer {
  readonly status: number;
  /** Names and values alternating, as they leave, without those that Node adds. */
  readonly rawHeaders: readonly string[];
  /** Undefined when larger than the limit, or without its end yet. */
  readonly body: Buffer | undefined;
}

/** Decides about an answer that is held back. Must neither throw nor reject. */
export interface AnswerDecider {
  /** Whether to hold the answer back; asked once, at its first output. Default: true. */
  isDue?(): boolean;
  /** The most body held back, in bytes. Default 1 MB, beyond which an answer but a 2xx or 409 leaves undecided. */
  readonly limitBytes?: number | undefined;
  /** Returns fields to add, or a replacement; undefined lets the answer out. `hasLeft`: its caller. */
  decide(
    status: number,
    answer: () => WholeAnswer,
    hasLeft: boolean,
  ): Promise<{ readonly headers: HeaderFields } | Replacement | undefined>;
  /** What follows failed before it had ended an answer: an error handler's comes. */
  failed?(error: unknown): void;
  /** The route's handlers have handed the request on: whoever answers now is none of them. */
  passedOn?(): void;
  /** A success that a middleware behind it had begun may have had its end when another answer came. */
  hold?(reason: string): void;
  /** The app destroyed the response before the decision. */
  destroyed?(): void;
  /** A pipe to the response has stopped, since the caller has left: perhaps nobody ends it. */
  deserted?(): void;
  /** Node refused to send the answer: it becomes 500. */
  unsendable(error: unknown): void;
}
