import { PayoutSendError, type Delivery, type DeliveryState } from "@countersign/sandbox";
import { exitCodes, UsageError, type CommandIo, type ExitCode } from "../command-io.ts";
import { parseInteger, readCertificates } from "../input.ts";
import { untilSignalled } from "../until-signalled.ts";
import { formatDeliveries, formatDeliveriesHead } from "./deliveries-report.ts";
import { DeliveriesAnswerError, deliveriesReader } from "./deliveries-request.ts";
import { followDeliveries } from "./follow-deliveries.ts";

/** The flags of `countersign deliveries`. */
export interface DeliveriesFlags {
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

/** Prints what the flags say, and returns how it ended. */
export async function listDeliveries(flags: DeliveriesFlags, io: CommandIo): Promise<ExitCode> {
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
