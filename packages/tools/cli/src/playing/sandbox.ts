import { randomBytes } from "node:crypto";
import type { Delivery, Sandbox } from "@countersign/devtools/sandbox";
import { startSandbox } from "@countersign/devtools/sandbox";
import { SandboxDatabaseError } from "@countersign/devtools/internal";
import type { CommandIo, ExitCode, Switches, Texts } from "../command-io.ts";
import { codeOf, exitCodes, UsageError, usageErrorOf } from "../command-io.ts";
import { assertHttpAllowed, parseInteger, readCertificates } from "../input.ts";
import { createPaint, jsonLine, printable } from "../output.ts";
import { readPrivateKey } from "./transport.ts";

type SandboxOptions = Parameters<typeof startSandbox>[0];

export interface SandboxFlags
  extends
    Texts<"apiKey" | "ca" | "forwardedFor" | "payoutUrl" | "key" | "keyid">,
    Switches<"allowHttp" | "twiceAtOnce" | "json">,
    Readonly<Record<"host" | "port" | "db" | "speed" | "batch" | "maxEvents", string>> {
  /** Chances; true without a number. */
  readonly duplicate?: string | true | undefined;
  readonly reorder?: string | true | undefined;
  readonly dropConnection?: string | true | undefined;
  readonly page: boolean;
}

/** Runs until a signal ends it. Throws a UsageError for wrong flags. */
export async function runSandbox(flags: SandboxFlags, io: CommandIo): Promise<ExitCode> {
  const apiKey = flags.apiKey ?? randomBytes(24).toString("base64url");
  const line = happeningLine(io);
  const onAttempt = (delivery: Delivery): void =>
    io.writeOut(flags.json === true ? jsonLine({ delivery }) : line(delivery));
  const options = { ...sandboxOptions(flags, apiKey), onAttempt };
  const sandbox = await startSandbox(options).catch((error: unknown) => {
    throw startError(error, flags);
  });
  io.writeOut(
    flags.json === true
      ? jsonLine({
          url: sandbox.url,
          page: sandbox.pageUrl ?? null,
          apiKey: flags.apiKey === undefined ? apiKey : null,
          database: flags.db,
        })
      : formatStart(sandbox, flags, apiKey),
  );
  await untilSignalled();
  await sandbox.close();
  return exitCodes.asExpected;
}

// Before anything runs, only the command line can be wrong.
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
    allowHttp: flags.allowHttp === true ? true : "loopback",
    speed: parseNumber("--speed", flags.speed, { min: 0.001, max: 1_000_000 }),
    ca: flags.ca === undefined ? undefined : readCertificates(flags.ca),
    forwardedFor: flags.forwardedFor,
    delivery: deliveryOptions(flags),
    page: flags.page && pageOptions(flags),
  };
}

function pageOptions({ payoutUrl, key, keyid, allowHttp }: SandboxFlags) {
  if ((key === undefined) !== (keyid === undefined)) throw new UsageError("--key and --keyid go together");
  if (payoutUrl !== undefined) assertHttpAllowed("--payout-url", payoutUrl, allowHttp);
  return key === undefined
    ? { payoutUrl }
    : { payoutUrl, keyid, keyFile: key, privateKey: readPrivateKey(key) };
}

function deliveryOptions(flags: SandboxFlags): NonNullable<SandboxOptions["delivery"]> {
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

function formatStart({ url, pageUrl }: Sandbox, flags: SandboxFlags, apiKey: string): string {
  const lines = [
    `listening  ${url}`,
    ...(pageUrl === undefined ? [] : [`page       ${pageUrl}`]),
    ...(flags.apiKey === undefined ? [`X-API-KEY  ${apiKey}`] : []),
    `database   ${flags.db === ":memory:" ? "in memory; --db keeps it" : printable(flags.db)}`,
  ];
  return `${lines.join("\n")}\n`;
}

// Further signals change nothing: under npm a Ctrl-C arrives twice, and the caller ends within a bounded time.
function untilSignalled(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => resolve());
  });
}

export interface Happening extends Pick<Delivery, "id" | "state" | "eventTypes" | "nextAttemptAt"> {
  readonly attempts: readonly (Pick<Delivery["attempts"][number], "at" | "status"> & {
    readonly error?: string | undefined;
  })[];
}

export function happeningLine(io: CommandIo): (delivery: Happening) => string {
  const paint = createPaint(io.colours);
  return ({ id, state, attempts, nextAttemptAt, eventTypes }) => {
    const now = io.clock() * 1000;
    const last = attempts.at(-1);
    const answer = last === undefined ? "-" : String(last.status ?? last.error ?? "no answer");
    const [first = "no event", ...others] = eventTypes;
    const events = printable(others.length === 0 ? first : `${first} and ${others.length} more`);
    const columns = [
      timeOf(last?.at ?? now, now),
      `#${id}`.padEnd(4),
      state.padEnd(9),
      answer.padEnd(3),
      nextAttemptAt === undefined ? events : `${events.padEnd(34)}  again ${timeOf(nextAttemptAt, now)}`,
    ];
    const line = columns.join("  ");
    return `${state === "pending" ? line : paint(state === "delivered" ? "green" : "red", line)}\n`;
  };
}

function timeOf(ms: number, now: number): string {
  const [day = "", time = ""] = new Date(ms).toISOString().split("T");
  const short = `${time.slice(0, 8)}Z`;
  return Math.abs(now - ms) < 43_200_000 ? short : `${day} ${short}`;
}
