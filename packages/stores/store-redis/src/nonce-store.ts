import type { NonceClaim, NonceStore } from "@countersign/core";
import { StoreGate, encodeText } from "@countersign/idempotency/store";
import { ping, runScript } from "./commands.ts";
import { type ResolvedRedisOptions, longestMs } from "./options.ts";
import { oneOf } from "./replies.ts";
import { nonceScript } from "./scripts.ts";
import type { ServerCheck } from "./server-check.ts";

/** The nonce store on Redis. A claim is one script on one key. */
export interface RedisNonceStore extends NonceStore {
  claim(claim: NonceClaim): Promise<"fresh" | "seen">;
  /** Gives 0 once the server has answered: Redis removes by itself what has expired. */
  prune(): Promise<number>;
  /** Leaves the client open. A later call throws. */
  close(): void;
}

export class Nonces implements RedisNonceStore {
  readonly engine = "redis";
  readonly #gate = new StoreGate("redis nonce store");
  readonly #options: ResolvedRedisOptions;
  readonly #server: ServerCheck;

  constructor(options: ResolvedRedisOptions, server: ServerCheck) {
    this.#options = options;
    this.#server = server;
  }

  async claim(claim: NonceClaim): Promise<"fresh" | "seen"> {
    this.#gate.assertNonce(claim);
    const { scope, nonce, token, retainMs } = claim;
    const { prefix, now } = this.#options;
    // Without the length, two pairs of scope and nonce could have one name.
    const key = `${prefix}:nonce:${scope.length}:${encodeText(scope)}:${encodeText(nonce)}`;
    const args = [now(), encodeText(token), String(Math.min(retainMs, longestMs))];
    const reply = await runScript(this.#options, nonceScript, key, args);
    this.#server.begin();
    return oneOf(reply, ["fresh", "seen"]);
  }

  async prune(): Promise<number> {
    this.#gate.assertUsable();
    await ping(this.#options);
    return 0;
  }

  close(): void {
    this.#gate.close();
  }
}
