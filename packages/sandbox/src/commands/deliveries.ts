import { Command, Option } from "commander";
import { exitCodes, UsageError, type CommandIo, type ExitCode } from "../command-io.ts";
import { formatDeliveries, formatDeliveriesHead } from "../deliveries-report.ts";
import { DeliveriesAnswerError, deliveriesReader } from "../deliveries-request.ts";
import { deliveryStates } from "../delivery/delivery-state.ts";
import type { Delivery, DeliveryState } from "../delivery/types.ts";
import { followDeliveries } from "../follow-deliveries.ts";
import { parseInteger, readCertificates } from "../payout-input.ts";
import { PayoutSendError } from "../send-error.ts";
import { untilSignalled } from "../until-signalled.ts";

interface DeliveriesFlags {
  readonly url: string;
  readonly apiKey: string;
  readonly state?: DeliveryState | undefined;
  readonly event?: string | undefined;
  readonly limit: string;
  readonly follow?: boolean | undefined;
  readonly interval: string;
  readonly timeout: string;
  readonly ca?: string | undefined;
  readonly json?: boolean | undefined;
}

const notes = `
Examples:
  COUNTERSIGN_API_KEY=… countersign deliveries --url http://127.0.0.1:4000 --state pending
  COUNTERSIGN_API_KEY=… countersign deliveries --url http://127.0.0.1:4000 --follow

--follow prints the deliveries, and then each that is new or has changed, until SIGINT or SIGTERM. With --json it prints one
JSON document in each line; without --follow it prints one with all deliveries, attempts included.

Exit codes:
  0  listed   1  the sandbox answered otherwise   2  usage   3  no answer
`;

/** `countersign deliveries`: the webhooks of a sandbox and what became of them. */
export function deliveriesCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  return new Command("deliveries")
    .description("list the webhooks that a sandbox has sent or is to send")
    .requiredOption("--url <url>", "address of the sandbox")
    .addOption(
      new Option("--api-key <key>", "the sandbox's X-API-KEY")
        .env("COUNTERSIGN_API_KEY")
        .makeOptionMandatory(),
    )
    .addOption(new Option("--state <state>", "deliveries in this state alone").choices(deliveryStates))
    .option("--event <id>", "deliveries with this event alone")
    .option("--limit <n>", "the newest so many", "100")
    .option("--follow", "go on, and print what is new or has changed")
    .option("--interval <ms>", "with --follow: pause between two readings", "1000")
    .option("--timeout <ms>", "time for each reading", "10000")
    .option("--ca <file>", "issuer certificates (PEM) of an https address")
    .option("--json", "print JSON instead of a table")
    .addHelpText("after", notes)
    .action(async (flags: DeliveriesFlags) => {
      finish(await listDeliveries(flags, io));
    });
}

async function listDeliveries(flags: DeliveriesFlags, io: CommandIo): Promise<ExitCode> {
  const read = readerOf(flags);
  const intervalMs = parseInteger("--interval", flags.interval, { min: 50, max: 3_600_000 });
  try {
    if (flags.follow === true) await follow(read, intervalMs, flags, io);
    else showAll(await read(), flags, io);
    return exitCodes.asExpected;
  } catch (error) {
    if (!(error instanceof PayoutSendError) && !(error instanceof DeliveriesAnswerError)) throw error;
    io.writeError(`error: ${error.message}\n`);
    return error instanceof PayoutSendError ? exitCodes.unreachable : exitCodes.otherwise;
  }
}

function readerOf(flags: DeliveriesFlags): () => Promise<Delivery[]> {
  const { url, apiKey, state, event, limit, timeout, ca } = flags;
  if (event === "") throw new UsageError("--event: expected the id of an event");
  return deliveriesReader({
    url,
    apiKey,
    timeoutMs: parseInteger("--timeout", timeout, { min: 1, max: 600_000 }),
    ca: ca === undefined ? undefined : readCertificates(ca),
    filter: { state, eventId: event, limit: parseInteger("--limit", limit, { min: 1, max: 9999 }) },
  });
}

function showAll(deliveries: readonly Delivery[], { json }: DeliveriesFlags, io: CommandIo): void {
  if (json === true) io.writeOut(`${JSON.stringify({ deliveries }, undefined, 2)}\n`);
  else io.writeOut(formatDeliveriesHead(io.colours) + formatDeliveries(deliveries, io.colours));
}

async function follow(
  read: () => Promise<Delivery[]>,
  intervalMs: number,
  { json }: DeliveriesFlags,
  io: CommandIo,
): Promise<void> {
  const ending = new AbortController();
  void untilSignalled().then(() => ending.abort());
  if (json !== true) io.writeOut(formatDeliveriesHead(io.colours));
  const show = (deliveries: readonly Delivery[]): void => {
    if (json !== true) io.writeOut(formatDeliveries(deliveries, io.colours));
    else io.writeOut(deliveries.map((delivery) => `${JSON.stringify(delivery)}\n`).join(""));
  };
  await followDeliveries({ read, show, intervalMs, signal: ending.signal });
}
