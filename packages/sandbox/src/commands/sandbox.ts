import { randomBytes } from "node:crypto";
import { Command, Option } from "commander";
import { exitCodes, UsageError, type CommandIo, type ExitCode } from "../command-io.ts";
import type { DeliveryOptions } from "../delivery/types.ts";
import { parseInteger, readCertificates } from "../payout-input.ts";
import { SandboxDatabaseError } from "../service/database.ts";
import type { SandboxOptions } from "../service/options.ts";
import { startSandbox, type Sandbox } from "../service/sandbox.ts";
import { codeOf } from "../thrown.ts";
import { untilSignalled } from "../until-signalled.ts";
import { usageErrorOf } from "../usage-error.ts";

interface SandboxFlags {
  readonly host: string;
  readonly port: string;
  readonly apiKey?: string | undefined;
  readonly db: string;
  readonly allowHttp?: boolean | undefined;
  readonly speed: string;
  readonly ca?: string | undefined;
  readonly batch: string;
  readonly maxEvents: string;
  readonly duplicate?: string | true | undefined;
  readonly reorder?: string | true | undefined;
  readonly twiceAtOnce?: boolean | undefined;
  readonly dropConnection?: string | true | undefined;
}

const notes = `
A chance is a number from 0 to 1; without one it is 1. The database holds the credentials of endpoints.

Examples:
  countersign sandbox --allow-http --speed 1440
  COUNTERSIGN_API_KEY=… countersign sandbox --port 4000 --db sandbox.db --ca authority.pem
  countersign sandbox --batch 2000 --duplicate 0.2 --reorder 0.2 --drop-connection 0.1

SIGTERM and SIGINT end it; with --db, what was not delivered goes out after the next start.
`;

/** `countersign sandbox`: the lending service on a loopback address, until a signal ends it. */
export function sandboxCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  const command = new Command("sandbox")
    .description("run the lending service: its API, the simulation, and webhooks to the endpoints registered")
    .option("--host <address>", "loopback address to listen on", "127.0.0.1")
    .option("--port <port>", "port to listen on; 0 is a free one", "0")
    .addOption(
      new Option("--api-key <key>", "what X-API-KEY has to be (default: a random one, which is printed)").env(
        "COUNTERSIGN_API_KEY",
      ),
    )
    .option("--db <file>", "keeps the state; created when missing", ":memory:")
    .option("--allow-http", "accept endpoints at http URLs")
    .option("--speed <factor>", "divides retry delays and the retry period; 1440 makes a day a minute", "1")
    .option("--ca <file>", "issuer certificates (PEM) of https endpoints");
  return addDeliveryOptions(command)
    .addHelpText("after", notes)
    .action(async (flags: SandboxFlags) => {
      const apiKey = flags.apiKey ?? randomBytes(24).toString("base64url");
      const sandbox = await start(flags, apiKey);
      io.writeOut(formatStart(sandbox.url, flags, apiKey));
      await untilSignalled();
      await sandbox.close();
      finish(exitCodes.asExpected);
    });
}

function addDeliveryOptions(command: Command): Command {
  return command
    .option("--batch <ms>", "how long events wait for others to share a webhook with", "0")
    .option("--max-events <n>", "events of one webhook at most", "100")
    .option("--duplicate [chance]", "send a delivered webhook once more")
    .option("--reorder [chance]", "hold a webhook back, so that the next one overtakes it")
    .option("--twice-at-once", "send every attempt as two requests at once")
    .option("--drop-connection [chance]", "lose the first answer of a delivery");
}

async function start(flags: SandboxFlags, apiKey: string): Promise<Sandbox> {
  const options = sandboxOptions(flags, apiKey);
  try {
    return await startSandbox(options);
  } catch (error) {
    throw startError(error, flags);
  }
}

// Before anything runs, all that can be wrong is what the command line said.
function startError(error: unknown, { host, port }: SandboxFlags): unknown {
  if (error instanceof TypeError) return usageErrorOf(error);
  if (error instanceof SandboxDatabaseError) {
    return new UsageError(`--db: ${error.message}`, { cause: error });
  }
  const code = codeOf(error);
  if (!/^E[A-Z]+$/.test(code)) return error;
  return new UsageError(`--port ${port}: cannot listen there on ${host} (${code})`, { cause: error });
}

function sandboxOptions(flags: SandboxFlags, apiKey: string): SandboxOptions {
  return {
    apiKey,
    host: flags.host,
    port: parseInteger("--port", flags.port, { min: 0, max: 65_535 }),
    database: flags.db,
    allowHttp: flags.allowHttp,
    speed: parseNumber("--speed", flags.speed, { min: 0.001, max: 1_000_000 }),
    ca: flags.ca === undefined ? undefined : readCertificates(flags.ca),
    delivery: deliveryOptions(flags),
  };
}

function deliveryOptions(flags: SandboxFlags): DeliveryOptions {
  return {
    batchMs: parseInteger("--batch", flags.batch, { min: 0, max: 86_400_000 }),
    maxEventsPerWebhook: parseInteger("--max-events", flags.maxEvents, { min: 1, max: 10_000 }),
    duplicate: parseChance("--duplicate", flags.duplicate),
    reorder: parseChance("--reorder", flags.reorder),
    twiceAtOnce: flags.twiceAtOnce,
    dropConnection: parseChance("--drop-connection", flags.dropConnection),
  };
}

function parseChance(option: string, text: string | true | undefined): number {
  if (text === undefined) return 0;
  return text === true ? 1 : parseNumber(option, text, { min: 0, max: 1 });
}

function parseNumber(option: string, text: string, { min, max }: { min: number; max: number }): number {
  const value = /^\d{1,9}(?:\.\d{1,9})?$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new UsageError(`${option}: expected a number from ${min} to ${max}`);
}

function formatStart(url: string, flags: SandboxFlags, apiKey: string): string {
  const lines = [
    `listening  ${url}`,
    flags.apiKey === undefined ? `X-API-KEY  ${apiKey}` : undefined,
    `database   ${flags.db === ":memory:" ? "in memory; --db keeps it" : flags.db}`,
  ];
  return `${lines.filter((line) => line !== undefined).join("\n")}\n`;
}
