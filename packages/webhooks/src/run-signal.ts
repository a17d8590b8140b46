import type { OwnedKey } from "@countersign/idempotency-guard";

/** The signal of a run: aborts with that of its key, or before it when the time of the run is up. */
export class RunSignal {
  readonly #owned: OwnedKey;
  #reason: Error | undefined;
  #controller: AbortController | undefined;

  constructor(owned: OwnedKey) {
    this.#owned = owned;
  }

  /** Made when somebody asks for it: most handlers never do. */
  get value(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      if (this.#reason !== undefined) controller.abort(this.#reason);
      const { signal } = this.#owned;
      const follow = (): void => controller.abort(signal.reason);
      if (signal.aborted) follow();
      else signal.addEventListener("abort", follow, { once: true });
    }
    return this.#controller.signal;
  }

  abort(reason: Error): void {
    this.#reason ??= reason;
    this.#controller?.abort(this.#reason);
  }
}
