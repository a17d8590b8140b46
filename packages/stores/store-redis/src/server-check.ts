import { publishNotice } from "@countersign/core/internal";
import { send } from "./commands.ts";
import { type ResolvedRedisOptions, factoryName } from "./options.ts";
import { plain } from "./replies.ts";

/** The codes of the notices about a server that can lose a record. */
export type RedisNoticeCode =
  | "redis-forgets-on-restart"
  | "redis-is-replica"
  | "redis-may-evict"
  | "redis-not-checked"
  | "redis-too-old";

const oldestVersion = [6, 2] as const;

/**
 * Reads INFO once, and publishes on `countersign:notice` what can lose a record. After a failure it tries again after 1, 2, 4, 8 ...
 * further steps: a server that never shows INFO must not be asked with each payment.
 */
export class ServerCheck {
  readonly #options: ResolvedRedisOptions;
  #state: "due" | "under way" | "seen" = "due";
  #pause = 0;
  #failures = 0;

  constructor(options: ResolvedRedisOptions) {
    this.#options = options;
  }

  /** Called after each step that was answered. Never throws. */
  begin(): void {
    if (this.#state !== "due") return;
    if (this.#pause > 1) {
      this.#pause -= 1;
      return;
    }
    this.#state = "under way";
    void this.#check();
  }

  async #check(): Promise<void> {
    try {
      const doubts = doubtsAbout(plain(await send(this.#options, ["INFO"])));
      this.#state = "seen";
      for (const [code, message] of doubts) publishNotice({ guard: factoryName, code, message });
    } catch (error) {
      this.#state = "due";
      this.#pause = 2 ** this.#failures;
      this.#failures += 1;
      // One notice, however often it fails.
      if (this.#failures > 1) return;
      // A server whose rights hide INFO is no reason to refuse payments.
      const message =
        "the settings of Redis could not be read: check maxmemory-policy noeviction and appendonly yes by hand";
      const code: RedisNoticeCode = "redis-not-checked";
      publishNotice({ guard: factoryName, code, message, error });
    }
  }
}

function doubtsAbout(info: string): readonly (readonly [code: RedisNoticeCode, message: string])[] {
  const doubts: [RedisNoticeCode, string][] = [];
  const version = field(info, "redis_version");
  const policy = field(info, "maxmemory_policy");
  if (version === undefined || policy === undefined)
    throw new Error("INFO lacks redis_version or maxmemory_policy");
  if (isOlder(version)) {
    doubts.push(["redis-too-old", `Redis ${version} is not tested: use ${oldestVersion.join(".")} or newer`]);
  }
  if (policy !== "noeviction") {
    const message = `maxmemory-policy is ${policy}: a server that is short of memory forgets paid keys; set noeviction`;
    doubts.push(["redis-may-evict", message]);
  }
  if (field(info, "aof_enabled") !== "1") {
    const message =
      "there is no append-only file: a restart forgets paid keys and nonces; set appendonly yes";
    doubts.push(["redis-forgets-on-restart", message]);
  }
  if (field(info, "role") === "slave") {
    doubts.push(["redis-is-replica", "the server is a replica: connect to the primary"]);
  }
  return doubts;
}

function isOlder(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [oldestMajor, oldestMinor] = oldestVersion;
  return major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
}

function field(info: string, name: string): string | undefined {
  const line = info.split(/\r?\n/).find((candidate) => candidate.startsWith(`${name}:`));
  // Only what a setting can look like: it goes into a message.
  return line === undefined ? undefined : /^[\w.-]{1,40}/.exec(line.slice(name.length + 1))?.[0];
}
