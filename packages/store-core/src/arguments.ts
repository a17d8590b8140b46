/** Throws a TypeError unless `text` is a string of 1 to 512 characters: drivers would bind an object as parameters of their own. */
export function assertText(store: string, name: string, text: unknown): asserts text is string {
  if (typeof text !== "string" || text.length === 0 || text.length > 512) {
    throw new TypeError(`${store}: ${name} must be a string of 1 to 512 characters`);
  }
}

/** Throws a TypeError unless `durationMs` is a whole number of milliseconds above zero. */
export function assertDuration(
  store: string,
  name: string,
  durationMs: unknown,
): asserts durationMs is number {
  if (typeof durationMs !== "number" || !Number.isSafeInteger(durationMs) || durationMs <= 0) {
    throw new TypeError(`${store}: ${name} must be a whole number of milliseconds above 0`);
  }
}

/** Throws a TypeError unless `outcome` is one that an operator can give. */
export function assertOutcome(store: string, outcome: unknown): asserts outcome is "done" | "released" {
  if (outcome !== "done" && outcome !== "released") {
    throw new TypeError(`${store}: outcome must be "done" or "released"`);
  }
}

/** Throws a TypeError unless `decision` has the fence of the attempt that it is about. */
export function assertDecision(
  store: string,
  decision: unknown,
): asserts decision is { readonly fence: number } {
  const fence: unknown =
    typeof decision === "object" && decision !== null && "fence" in decision ? decision.fence : undefined;
  if (typeof fence !== "number" || !Number.isSafeInteger(fence) || fence < 0) {
    throw new TypeError(`${store}: resolve needs { fence }, that of the record that was read`);
  }
}

/** Throws after close. */
export function assertOpen(store: string, closed: boolean): void {
  if (closed) throw new Error(`${store}: the store is closed`);
}
