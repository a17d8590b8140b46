import { readOptions } from "@countersign/core/door";
import type { AnswerStore } from "@countersign/idempotency";
import { StoreGate, encodeText } from "@countersign/idempotency/store";
import { ping, runScript } from "./commands.ts";
import { table, type RedisStoresOptions, type ResolvedRedisOptions } from "./options.ts";
import { oneOf, plain, unexpected } from "./replies.ts";
import { findAnswerScript, keepAnswerScript } from "./scripts.ts";

const name = "redis answer store";
const base64 = /^:[A-Za-z0-9+/]*={0,2}$/;

/**
 * Keeps answers of done keys on Redis. Takes the options of `createRedisStores`; `retentionMs` is that of the answers. Sends nothing
 * before the first step. Throws an OptionError on a wrong option.
 */
export function createRedisAnswers(options: RedisStoresOptions): AnswerStore {
  return new Answers(readOptions("createRedisAnswers", table, options));
}

class Answers implements AnswerStore {
  readonly engine = "redis";
  readonly retentionMs: number;
  readonly #gate = new StoreGate(name);
  readonly #options: ResolvedRedisOptions;

  constructor(options: ResolvedRedisOptions) {
    this.#options = options;
    this.retentionMs = options.retentionMs;
  }

  async keep(token: string, answer: Uint8Array): Promise<void> {
    const key = this.#keyOf(token);
    if (!(answer instanceof Uint8Array)) throw new TypeError(`${name}: the answer must be bytes`);
    // As text: clients of Redis differ in what they make of bytes.
    const text = Buffer.from(answer.buffer, answer.byteOffset, answer.byteLength).toString("base64");
    const args = [this.#options.now(), String(this.retentionMs), text];
    oneOf(await runScript(this.#options, keepAnswerScript, key, args), ["kept"]);
  }

  async find(token: string): Promise<Uint8Array | undefined> {
    const key = this.#keyOf(token);
    const reply = plain(await runScript(this.#options, findAnswerScript, key, [this.#options.now()]));
    if (reply === "none") return undefined;
    if (!base64.test(reply)) throw unexpected();
    return Buffer.from(reply.slice(1), "base64");
  }

  async prune(): Promise<number> {
    this.#gate.assertUsable();
    await ping(this.#options);
    return 0;
  }

  close(): void {
    this.#gate.close();
  }

  #keyOf(token: string): string {
    this.#gate.assertToken(token);
    return `${this.#options.prefix}:answer:${encodeText(token)}`;
  }
}
