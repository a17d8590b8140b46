import type { DeliveryState } from "@countersign/sandbox";
import { Command, Option } from "commander";
import type { CommandIo, ExitCode } from "../command-io.ts";
import { loadPlaying } from "../load-package.ts";
import type { DeliveriesFlags } from "../playing/deliveries.ts";
import { addSandboxFlags } from "./sandbox-flags.ts";

// The sandbox's own list would load it for every command line.
const deliveryStates = Object.keys({
  pending: true,
  delivered: true,
  failed: true,
} satisfies Record<DeliveryState, true>);

const notes = `
Examples:
  countersign deliveries --url http://127.0.0.1:4000 --state pending
  countersign deliveries --url http://127.0.0.1:4000 --follow

--follow prints the deliveries, and then each that is new or has changed, until
SIGINT or SIGTERM. With --json it prints one JSON document in each line; without
--follow it prints one with all deliveries, attempts included. Times are UTC.

Exit codes:
  0  listed   1  the sandbox answered otherwise   2  usage   3  no answer
`;

/** `countersign deliveries`: the webhooks of a sandbox and what became of them. */
export function deliveriesCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  const command = new Command("deliveries").description(
    "list the webhooks that a sandbox has sent or is to send",
  );
  return addSandboxFlags(command)
    .addOption(new Option("--state <state>", "deliveries in this state alone").choices(deliveryStates))
    .option("--event <id>", "deliveries with this event alone")
    .option("--limit <n>", "the newest so many", "100")
    .option("--follow", "go on, and print what is new or has changed")
    .option("--interval <ms>", "with --follow: pause between two readings", "1000")
    .option("--json", "print JSON instead of a table")
    .addHelpText("after", notes)
    .action(async (flags: DeliveriesFlags) => {
      const { listDeliveries } = await loadPlaying("deliveries", () => import("../playing/deliveries.ts"));
      finish(await listDeliveries(flags, io));
    });
}
