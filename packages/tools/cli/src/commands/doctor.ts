import { Command } from "commander";
import { exitCodes, type CommandIo, type Finish, type Switches } from "../command-io.ts";
import type { ExamineFlags } from "../doctor/examine.ts";
import { allowHttpOption } from "../input.ts";
import { addStoreOptions } from "../operator/store-target.ts";

interface DoctorFlags extends ExamineFlags, Switches<"strict" | "json"> {}

const notes = `
--app loads a module in a process of its own, with this environment: an exported
Express or Fastify app (app, default), a function that makes one (createApp,
buildApp, default), or a server module, which is not let to listen. --url sends
two requests without a signature that any endpoint refuses. --store-url, or
STORE_URL, and --store-module look at the store. Each finding has a page.

Examples:
  NODE_ENV=production countersign doctor --app ./dist/app.js
  countersign doctor --url http://127.0.0.1:3000/api/v1/transaction
  STORE_URL=postgres://… countersign doctor --json

Exit codes:
  0  no error, and with --strict no warning   1  something is wrong   2  usage
`;

/** `countersign doctor`: looks for faults in how a platform is set up. */
export function doctorCommand(io: CommandIo, finish: Finish): Command {
  const command = new Command("doctor")
    .description("look for faults in an app, a running endpoint and a store")
    .option("--app <file>", "module with the app; it is loaded, and does not listen")
    .option("--url <url>", "endpoint of an app that runs")
    .addOption(allowHttpOption())
    .option("--timeout <ms>", "time to load the app, and for each request", "10000")
    .option("--strict", "end with 1 for warnings too");
  return addStoreOptions(command)
    .option("--json", "print one JSON document instead of text")
    .addHelpText("after", notes)
    .action(async (flags: DoctorFlags) => {
      const { examine } = await import("../doctor/examine.ts");
      const { diagnosisJson, diagnosisText } = await import("../doctor/report.ts");
      const diagnosis = await examine(flags, io);
      io.writeOut(flags.json === true ? diagnosisJson(diagnosis) : diagnosisText(diagnosis, io.colours));
      const isWrong = diagnosis.findings.some(
        ({ severity }) => severity === "error" || (severity === "warning" && flags.strict === true),
      );
      finish(isWrong ? exitCodes.otherwise : exitCodes.asExpected);
    });
}
