import { Command, Option } from "commander";
import type { CommandIo, Finish } from "../command-io.ts";
import { allowHttpOption } from "../input.ts";
import { loadPlaying } from "../load-package.ts";
import { sampleTexts } from "../sample-texts.ts";
import type { TriggerFlags } from "../playing/trigger.ts";

const notes = `
${sampleTexts}
Examples:
  countersign trigger buyer.status_changed --url http://127.0.0.1:4000
  countersign trigger payment_request.repayment.repaid \\
    --url http://127.0.0.1:4000 --data '{"payment_request_id":"request-7"}'

Everything else that a sandbox does is done on its page, or by its HTTP API.

Exit codes:
  0  every endpoint has answered 2xx   1  not all, or there is none
  2  usage                             3  the sandbox does not answer
`;

export function triggerCommand(io: CommandIo, finish: Finish): Command {
  return new Command("trigger")
    .description("have a sandbox that runs send one event to every endpoint")
    .argument("<event>", "type of the event")
    .option("--data <json>", "data of the event (default: the sample below)")
    .option("--event-id <id>", "event_id (default: a fresh one)")
    .requiredOption("--url <url>", "address of the sandbox")
    .addOption(
      new Option("--api-key <key>", "the sandbox's X-API-KEY")
        .env("COUNTERSIGN_API_KEY")
        .makeOptionMandatory(),
    )
    .option("--timeout <ms>", "time for each request", "10000")
    .option("--ca <file>", "issuer certificates (PEM) of an https address")
    .addOption(allowHttpOption())
    .option("--wait <ms>", "how long to wait for the first answer of each endpoint", "5000")
    .option("--json", "print one JSON document instead of text")
    .addHelpText("after", notes)
    .action(async (type: string, flags: TriggerFlags) => {
      const { runTrigger } = await loadPlaying("trigger", () => import("../playing/trigger.ts"));
      finish(await runTrigger(type, flags, io));
    });
}
