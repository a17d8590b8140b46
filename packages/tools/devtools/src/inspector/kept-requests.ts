import type { RecordedRequest } from "./recorded-request.ts";

// Ids of dropped requests, which are answered with request-not-kept.
const rememberedIds = 10_000;

export class KeptRequests {
  readonly #kept: number;
  // Oldest first.
  readonly #requests = new Map<number, RecordedRequest>();
  readonly #byVerdict = new Map<string, number>();

  constructor(kept: number) {
    this.#kept = kept;
  }

  add(record: RecordedRequest): void {
    this.#requests.set(record.id, record);
    for (const id of this.#requests.keys()) {
      if (this.#requests.size <= this.#kept) return;
      this.#requests.delete(id);
    }
  }

  /** Counts all requests: for an answer or an event, not for each request. */
  get counts(): Readonly<Record<RecordedRequest["outcome"], number>> {
    const counts = { pass: 0, reject: 0, error: 0 };
    for (const { outcome } of this.#requests.values()) counts[outcome] += 1;
    return counts;
  }

  nameVerdict(verdictId: string, record: RecordedRequest): void {
    this.#byVerdict.set(verdictId, record.id);
    for (const [oldest, id] of this.#byVerdict) {
      if (this.#byVerdict.size <= rememberedIds || this.#requests.has(id)) return;
      this.#byVerdict.delete(oldest);
    }
  }

  get(id: number): RecordedRequest | undefined {
    return this.#requests.get(id);
  }

  /** The request may already be dropped. */
  numberOf(verdictId: string): number | undefined {
    return this.#byVerdict.get(verdictId);
  }

  newest(): readonly RecordedRequest[] {
    const all = [...this.#requests.values()];
    all.reverse();
    return all;
  }
}
