import { readOptions } from "@countersign/core/internal";
import type { AnswerStore } from "@countersign/idempotency";
import { encodeText } from "@countersign/idempotency/store";
import { table, type RedisStoresOptions, type ResolvedRedisOptions } from "./options.ts";
import { oneOf, plain, unexpected } from "./replies.ts";
import { ScriptedStore } from "./scripted-store.ts";
import { type RedisScript, findAnswerScript, keepAnswerScript } from "./scripts.ts";

const name = "redis answer store";
const base64 = /^:[A-Za-z0-9+/]*={0,2}$/;

/** Keeps answers of done keys on Redis for `retentionMs`. Sends nothing before the first step. Throws an OptionError on a wrong option. */
export function createRedisAnswers(options: RedisStoresOptions): AnswerStore {
  return new Answers(readOptions("createRedisAnswers", table, options));
}

class Answers extends ScriptedStore implements AnswerStore {
  readonly retentionMs: number;

  constructor(options: ResolvedRedisOptions) {
    super(name, options);
    this.retentionMs = options.retentionMs;
  }

  async keep(token: string, answer: Uint8Array): Promise<void> {
    this.gate.assertToken(token);
    if (!(answer instanceof Uint8Array)) throw new TypeError(`${name}: the answer must be bytes`);
    // As text: clients of Redis differ in what they make of bytes.
    const text = Buffer.from(answer.buffer, answer.byteOffset, answer.byteLength).toString("base64");
    oneOf(await this.#run(keepAnswerScript, token, [String(this.retentionMs), text]), ["kept"]);
  }

  async find(token: string): Promise<Uint8Array | undefined> {
    this.gate.assertToken(token);
    const reply = plain(await this.#run(findAnswerScript, token, []));
    if (reply === "none") return undefined;
    if (!base64.test(reply)) throw unexpected();
    return Buffer.from(reply.slice(1), "base64");
  }

  #run(script: RedisScript, token: string, args: readonly string[]): Promise<unknown> {
    return this.run(script, `answer:${encodeText(token)}`, args);
  }
}
