import { publishNotice, quoteForLog } from "@countersign/guard";
import { factory } from "./webhook-handler-options.ts";

// Whoever may send events chooses their types: without a bound they would fill the memory.
const maxNoticed = 1_000;

/** Says once of each type that its events are acknowledged without a handler. */
export class IgnoredTypes {
  readonly #noticed = new Set<string>();

  notice(type: string): void {
    if (this.#noticed.has(type) || this.#noticed.size >= maxNoticed) return;
    this.#noticed.add(type);
    publishNotice({
      guard: factory,
      code: "event-type-ignored",
      message: `events of the type ${quoteForLog(type)} have no handler: they are acknowledged, and nothing else`,
    });
  }
}
