import type { RecordedRequest } from "./recorded-request.ts";

/** How many requests there are of each outcome. */
export type Counts = Record<RecordedRequest["outcome"], number>;

const rememberedIds = 10_000;

/** The newest requests, found by number and by the ids of their verdicts. */
export class KeptRequests {
  readonly counts: Counts = { pass: 0, reject: 0, error: 0 };
  readonly #kept: number;
  // In the order in which they came.
  readonly #requests = new Map<number, RecordedRequest>();
  readonly #byVerdict = new Map<string, number>();
  readonly #forgotten = new Set<string>();

  constructor(kept: number) {
    this.#kept = kept;
  }

  add(record: RecordedRequest): void {
    this.#requests.set(record.id, record);
    this.counts[record.outcome] += 1;
    for (const [id, oldest] of this.#requests) {
      if (this.#requests.size <= this.#kept) return;
      this.#requests.delete(id);
      this.counts[oldest.outcome] -= 1;
      for (const verdict of oldest.verdicts) this.#forget(verdict.id);
    }
  }

  /** Does what may change the outcome. */
  change<T>(record: RecordedRequest, work: () => T): T {
    const before = record.outcome;
    const made = work();
    this.counts[before] -= 1;
    this.counts[record.outcome] += 1;
    return made;
  }

  nameVerdict(id: string, record: RecordedRequest): void {
    this.#byVerdict.set(id, record.id);
  }

  get(id: number): RecordedRequest | undefined {
    return this.#requests.get(id);
  }

  byVerdict(id: string): RecordedRequest | undefined {
    const number = this.#byVerdict.get(id);
    return number === undefined ? undefined : this.#requests.get(number);
  }

  /** Whether the verdict was that of a request that is kept no longer. */
  isForgotten(verdictId: string): boolean {
    return this.#forgotten.has(verdictId);
  }

  /** Newest first. */
  *newest(): Generator<RecordedRequest> {
    const ids = [...this.#requests.keys()];
    for (let index = ids.length - 1; index >= 0; index -= 1) {
      const record = this.#requests.get(ids[index] ?? 0);
      if (record !== undefined) yield record;
    }
  }

  #forget(verdictId: string): void {
    this.#byVerdict.delete(verdictId);
    this.#forgotten.add(verdictId);
    for (const oldest of this.#forgotten) {
      if (this.#forgotten.size <= rememberedIds) return;
      this.#forgotten.delete(oldest);
    }
  }
}
