import type { IdempotencyListQuery } from "@countersign/idempotency";
import {
  encodeText,
  expires,
  type FirstChange,
  type KeyChange,
  type KeyTable,
  type ListedRows,
  type Seen,
  type SeenRow,
} from "@countersign/idempotency/store";
import { listKeys } from "./listing.ts";
import { type ResolvedRedisOptions, longestMs } from "./options.ts";
import { addedOf, fenceOf, rowOf } from "./replies.ts";
import { ScriptedStore } from "./scripted-store.ts";
import { addScript, lookScript, writeScript, type RedisScript } from "./scripts.ts";
import type { ServerCheck } from "./server-check.ts";

export const name = "redis idempotency store";

/** The table of keys. Each step is one script on one key. */
export class RedisKeyTable extends ScriptedStore implements KeyTable {
  readonly #server: ServerCheck;

  constructor(options: ResolvedRedisOptions, server: ServerCheck) {
    super(name, options);
    this.#server = server;
  }

  async add(key: string, row: FirstChange): Promise<number | SeenRow | undefined> {
    const { state, token, fingerprint, reason, durationMs, recovery } = row;
    const texts = [token, fingerprint, reason].map(encodeText);
    return addedOf(await this.#run(addScript, key, [state, ...texts, duration(durationMs), recovery]));
  }

  async look(key: string): Promise<SeenRow | undefined> {
    return rowOf(await this.#run(lookScript, key, []));
  }

  async write(key: string, change: KeyChange, seen: Seen): Promise<number | undefined> {
    const {
      state,
      reason,
      durationMs,
      token = "",
      fingerprint = "",
      recovery = "",
      raisesFence,
      decision,
    } = change;
    const [version, states] =
      "version" in seen ? [String(seen.version), ""] : ["", `,${seen.states.join(",")},`];
    const decided =
      decision === undefined
        ? ["stays", ""]
        : decision === null
          ? ["none", ""]
          : ["set", JSON.stringify(decision)];
    const args = [
      encodeText(seen.token),
      version,
      states,
      state,
      encodeText(reason),
      duration(durationMs),
      encodeText(token),
      encodeText(fingerprint),
      recovery,
      flag(raisesFence === true),
      flag(expires(state)),
      ...decided,
    ];
    return fenceOf(await this.#run(writeScript, key, args));
  }

  async list(query: IdempotencyListQuery): Promise<ListedRows> {
    return listKeys({ name, options: this.options, look: (key) => this.look(key) }, query);
  }

  async #run(script: RedisScript, key: string, args: readonly string[]): Promise<unknown> {
    const reply = await this.run(script, `key:${encodeText(key)}`, args);
    this.#server.begin();
    return reply;
  }
}

function duration(durationMs: number): string {
  return String(Math.min(durationMs, longestMs));
}

function flag(isSet: boolean): string {
  return isSet ? "1" : "";
}
