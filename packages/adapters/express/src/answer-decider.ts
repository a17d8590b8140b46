import type { HeaderFields, Replacement } from "@countersign/core/internal";

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
  /** Runs a later handler of the request: a middleware before it may have lost the asynchronous context. */
  start?(handler: () => void): void;
  /** A response begins now, the first one or another in its place. */
  responseBegun?(): void;
  /** The handler failed before it had ended a response; an error handler's comes. `begun`: the status of the one that it had begun. */
  failed?(error: unknown, begun: number | undefined): void;
  /** Somebody else than the handler has failed, such as a time-out in front of the guard: an error handler's response comes. */
  failedElsewhere?(error: unknown): void;
  /** As `failed` or `failedElsewhere`: the asynchronous context tells which. */
  failedSomewhere?(error: unknown, begun: number | undefined): void;
  /** The handler never runs: what its framework does before it has failed. */
  neverBegan?(): void;
  /** The source of a piped response has failed, before anybody handles that. `status`: of that response. */
  pipeFailed?(status: number): void;
  /** Another response takes the place of the one that had begun with `begun`. */
  responseFailed?(begun: number): void;
  /** Whether the route's handlers have handed the request on: whoever responds then is none of them. */
  passedOn?(hasPassed: boolean): void;
  /** The app ends a response that was destroyed, or that somebody else has ended. */
  respondedLate?(status: number): void;
  /** The app destroyed the response before the decision. */
  destroyed?(): void;
  /** A pipe to the response has stopped, since the caller has left: perhaps nobody ends it. */
  deserted?(): void;
  /** Node refused to send the answer: it becomes 500. */
  unsendable(error: unknown): void;
}
