import { publishNotice } from "@countersign/guard";
import { send } from "./commands.ts";
import { type ResolvedOptions, factory } from "./options.ts";
import { plain } from "./replies.ts";

const oldestVersion = [6, 2] as const;

/**
 * Looks once at the server, after the first step that it answered and beside the next ones, and publishes on
 * `countersign:notice` what can lose a record.
 */
export class ServerCheck {
  readonly #options: ResolvedOptions;
  #begun = false;

  constructor(options: ResolvedOptions) {
    this.#options = options;
  }

  /** Never throws; only the first call sends something. */
  begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    void this.#check();
  }

  async #check(): Promise<void> {
    try {
      for (const [code, message] of doubtsAbout(plain(await send(this.#options, ["INFO"])))) {
        publishNotice({ guard: factory, code, message });
      }
    } catch (error) {
      // A server whose rights hide INFO is no reason to refuse payments.
      const message =
        "the settings of Redis could not be read: check maxmemory-policy noeviction and appendonly yes by hand";
      publishNotice({ guard: factory, code: "redis-not-checked", message, error });
    }
  }
}

/** What is wrong with a server by its INFO: pairs of a code and a message. */
function doubtsAbout(info: string): readonly (readonly [code: string, message: string])[] {
  const doubts: [string, string][] = [];
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
