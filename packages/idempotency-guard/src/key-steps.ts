import { callStore, readRecord } from "./call-store.ts";
import type { KeyAttempt } from "./key-attempt.ts";
import type { ResolvedKeyOptions } from "./key-options.ts";
import type { Awaitable, IdempotencyOwnership, IdempotencyRecord } from "./store.ts";

/** What one attempt asks of the store. Each throws, or rejects, when the store does or is too slow. */
export class KeySteps {
  readonly #options: ResolvedKeyOptions;
  readonly #attempt: KeyAttempt;

  constructor(options: ResolvedKeyOptions, attempt: KeyAttempt) {
    this.#options = options;
    this.#attempt = attempt;
  }

  read(): Awaitable<IdempotencyRecord | undefined> {
    return readRecord(this.#options, this.#attempt.key);
  }

  complete(): Awaitable<IdempotencyOwnership> {
    const { store, storeTimeoutMs } = this.#options;
    return callStore(() => store.complete(this.#attempt.key, this.#attempt.token), storeTimeoutMs);
  }

  release(): Awaitable<IdempotencyOwnership> {
    const { store, storeTimeoutMs } = this.#options;
    return callStore(() => store.release(this.#attempt.key, this.#attempt.token), storeTimeoutMs);
  }

  /** `ok` also when it was held by an earlier call, whose answer was lost or late. */
  async hold(reason: string): Promise<IdempotencyOwnership> {
    const { store, storeTimeoutMs } = this.#options;
    const { key, token } = this.#attempt;
    if ((await callStore(() => store.hold(key, token, reason), storeTimeoutMs)) === "ok") return "ok";
    return this.isOwn(await this.read(), "held") ? "ok" : "lost";
  }

  /** Whether the store has this attempt's own durable record, read from outside of any transaction. */
  async isDone(): Promise<boolean> {
    return this.isOwn(await this.read(), "done");
  }

  /** Frees a key of which nothing has run (I13), also where its lease has ended meanwhile and a claim has held it. */
  async giveBack(): Promise<IdempotencyOwnership> {
    const { store, storeTimeoutMs } = this.#options;
    const { key } = this.#attempt;
    if ((await this.release()) === "ok") return "ok";
    const record = await this.read();
    if (record === undefined || !this.isOwn(record, "held")) return "lost";
    const resolved = await callStore(() => store.resolve(key, "released", record), storeTimeoutMs);
    return resolved === "ok" ? "ok" : "lost";
  }

  isOwn(record: IdempotencyRecord | undefined, state: IdempotencyRecord["state"]): boolean {
    return record?.state === state && record.token === this.#attempt.token;
  }
}
