import { StoreGate } from "@countersign/idempotency/store";
import { runScript, send } from "./commands.ts";
import type { ResolvedRedisOptions } from "./options.ts";
import { oneOf } from "./replies.ts";
import type { RedisScript } from "./scripts.ts";

/** A store each of whose steps is one script on one key. */
export abstract class ScriptedStore {
  readonly engine = "redis";
  protected readonly gate: StoreGate;
  protected readonly options: ResolvedRedisOptions;

  constructor(name: string, options: ResolvedRedisOptions) {
    this.gate = new StoreGate(name);
    this.options = options;
  }

  async prune(): Promise<number> {
    this.gate.assertUsable();
    oneOf(await send(this.options, ["PING"]), ["PONG"]);
    return 0;
  }

  close(): void {
    this.gate.close();
  }

  /** Runs a script on `prefix:name`. ARGV[1] is the time. */
  protected run(script: RedisScript, name: string, args: readonly string[]): Promise<unknown> {
    const { prefix, now } = this.options;
    return runScript(this.options, script, `${prefix}:${name}`, [now(), ...args]);
  }
}
