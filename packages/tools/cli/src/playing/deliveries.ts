import type { Delivery, DeliveryState } from "@countersign/sandbox";
import { exitCodes, UsageError, type CommandIo, type ExitCode } from "../command-io.ts";
import { parseInteger } from "../input.ts";
import { jsonDocument, jsonLine } from "../json-output.ts";
import { untilSignalled } from "../until-signalled.ts";
import { deliveriesReport } from "./deliveries-report.ts";
import { deliveriesReader } from "./deliveries-request.ts";
import { followDeliveries } from "./follow-deliveries.ts";
import { failingInOneLine, sandboxApi, type SandboxApiFlags } from "./sandbox-api.ts";

/** The flags of `countersign deliveries`. */
export interface DeliveriesFlags extends SandboxApiFlags {
  readonly state?: DeliveryState | undefined;
  readonly event?: string | undefined;
  readonly limit: string;
  readonly follow?: boolean | undefined;
  readonly interval: string;
  readonly json?: boolean | undefined;
}

/** Prints what the flags say, and returns how it ended. */
export async function listDeliveries(flags: DeliveriesFlags, io: CommandIo): Promise<ExitCode> {
  const read = readerOf(flags);
  const intervalMs = parseInteger("--interval", flags.interval, { min: 50, max: 3_600_000 });
  return await failingInOneLine(io, async () => {
    if (flags.follow === true) await follow(read, intervalMs, flags, io);
    else showAll(await read(), flags, io);
    return exitCodes.asExpected;
  });
}

function readerOf(flags: DeliveriesFlags): () => Promise<Delivery[]> {
  const { state, event, limit } = flags;
  if (event === "") throw new UsageError("--event: expected the id of an event");
  const filter = { state, eventId: event, limit: parseInteger("--limit", limit, { min: 1, max: 9999 }) };
  return deliveriesReader(sandboxApi(flags), filter);
}

function showAll(deliveries: readonly Delivery[], { json }: DeliveriesFlags, io: CommandIo): void {
  if (json === true) return io.writeOut(jsonDocument({ deliveries }));
  if (deliveries.length === 0)
    return io.writeOut("no delivery: no event was sent, or no endpoint is registered\n");
  const { head, lines } = deliveriesReport(deliveries, io);
  io.writeOut(head + lines(deliveries));
}

async function follow(
  read: () => Promise<Delivery[]>,
  intervalMs: number,
  { json }: DeliveriesFlags,
  io: CommandIo,
): Promise<void> {
  const ending = new AbortController();
  void untilSignalled().then(() => ending.abort());
  const { head, lines } = deliveriesReport([], io);
  if (json !== true) io.writeOut(head);
  const show = (deliveries: readonly Delivery[]): void => {
    io.writeOut(
      json === true ? deliveries.map((delivery) => jsonLine(delivery)).join("") : lines(deliveries),
    );
  };
  await followDeliveries({ read, show, intervalMs, signal: ending.signal });
}
