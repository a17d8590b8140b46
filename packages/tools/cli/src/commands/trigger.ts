import type { WebhookEventMap } from "@countersign/webhooks";
import { Command } from "commander";
import type { CommandIo, ExitCode } from "../command-io.ts";
import { loadPlaying } from "../load-package.ts";
import type { TriggerFlags, WaitingFlags } from "../playing/trigger.ts";
import { addWaitingFlags } from "./sandbox-flags.ts";

/** The types of events that the interface describes; others can be triggered all the same. */
export const eventTypes: readonly string[] = Object.keys({
  "buyer.status_changed": true,
  "seller.status_changed": true,
  "payment_request.repayment.repaid": true,
  "payment_request.repayment.reminder": true,
} satisfies Record<keyof WebhookEventMap, true>);

const exitNotes = `
Exit codes:
  0  every endpoint has answered 2xx   1  not all, or there is none
  2  usage                             3  the sandbox does not answer
`;

const triggerNotes = `
Events of the interface, each with sample data of its own:
${eventTypes.map((type) => `  ${type}`).join("\n")}

Examples:
  countersign trigger buyer.status_changed --url http://127.0.0.1:4000
  countersign trigger payment_request.repayment.repaid \\
    --url http://127.0.0.1:4000 --data '{"payment_request_id":"request-7"}'
${exitNotes}`;

const resendNotes = `
The same bytes go out again, at once. What was delivered is sent once more and
no further; anything else begins a new retry period.

Examples:
  countersign resend 12 --url http://127.0.0.1:4000
  countersign resend 5f0c3c6e-… --url http://127.0.0.1:4000 --json
${exitNotes}`;

/** `countersign trigger`: has a sandbox send one event to every endpoint. */
export function triggerCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  const command = new Command("trigger")
    .description("have a sandbox that runs send one event to every endpoint")
    .argument("<event>", "type of the event")
    .option("--data <json>", "data of the event (default: a sample of the type)")
    .option("--event-id <id>", "event_id (default: a fresh one)");
  return addWaitingFlags(command)
    .addHelpText("after", triggerNotes)
    .action(async (type: string, flags: TriggerFlags) => {
      const { runTrigger } = await loadPlaying("trigger", () => import("../playing/trigger.ts"));
      finish(await runTrigger(type, flags, io));
    });
}

/** `countersign resend`: has a sandbox send again what it has sent. */
export function resendCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  const command = new Command("resend")
    .description("have a sandbox send a webhook again")
    .argument("<id>", "of a delivery, as deliveries shows it, a webhook or an event");
  return addWaitingFlags(command)
    .addHelpText("after", resendNotes)
    .action(async (id: string, flags: WaitingFlags) => {
      const { runResend } = await loadPlaying("resend", () => import("../playing/trigger.ts"));
      finish(await runResend(id, flags, io));
    });
}
