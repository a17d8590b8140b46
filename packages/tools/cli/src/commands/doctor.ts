import { Command } from "commander";
import { allCodes } from "../explain/codes.ts";
import { exitCodes, type CommandIo, type Finish, type Switches } from "../command-io.ts";
import type { Diagnosis, ExamineFlags } from "../doctor/examine.ts";
import { causeOf, findingKinds, type Finding, type Severity } from "../doctor/findings.ts";
import { allowHttpOption } from "../input.ts";
import { addStoreOptions } from "../operator/store-target.ts";
import { createPaint, jsonDocument, printable, wrapped } from "../output.ts";

interface DoctorFlags extends ExamineFlags, Switches<"strict" | "json"> {}

const notes = `
--app loads a module in a process of its own, with this environment: an exported
Express or Fastify app (app, default), a function that makes one (createApp,
buildApp, default), or a server module, which is not let to listen. --url sends
two requests without a signature. It ends with what it has looked at, and what
not.

Examples:
  NODE_ENV=production countersign doctor --app ./dist/app.js
  countersign doctor --url http://127.0.0.1:3000/api/v1/transaction
  STORE_URL=postgres://… countersign doctor --json

Exit codes:
  0  no error, and with --strict no warning   1  something is wrong   2  usage
`;

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
      const diagnosis = await examine(flags, io);
      io.writeOut(flags.json === true ? diagnosisJson(diagnosis) : diagnosisText(diagnosis, io));
      const isWrong = diagnosis.findings.some(
        ({ severity }) => severity === "error" || (severity === "warning" && flags.strict === true),
      );
      finish(isWrong ? exitCodes.otherwise : exitCodes.asExpected);
    });
}

const severities: readonly Severity[] = ["error", "warning", "info"];
const colours = { error: "red", warning: "yellow", info: "dim" } as const;

function diagnosisText({ subjects, missed, findings }: Diagnosis, io: CommandIo): string {
  const paint = createPaint(io.colours);
  const codes = allCodes();
  // A pipe may have a reader of lines.
  const indented = (text: string): string =>
    io.columns === undefined ? `  ${text}\n` : wrapped(text, io.columns);
  const blocks = inOrder(findings).map(({ id, severity, subject, message, code = "" }) => {
    const known = codes.get(code);
    const cause = causeOf(id);
    return [
      `${paint(colours[severity], severity)} ${paint("bold", id)}\n`,
      indented(printable(`${subject}: ${message}`)),
      ...(cause === "" ? [] : [indented(`Cause: ${cause}`)]),
      indented(`To do: ${findingKinds[id][1]}`),
      ...(known === undefined ? [] : [indented(`${code}: ${known.cause} ${known.remedy}`)]),
      "\n",
    ].join("");
  });
  const counts = severities
    .map((severity) => ({ severity, found: count(findings, severity) }))
    .filter(({ found }) => found > 0)
    .map(({ severity, found }) => `${found} ${severity}${found > 1 && severity !== "info" ? "s" : ""}`);
  const looked = subjects
    .filter(({ checked }) => checked.length > 0)
    .map(({ shown, checked }) => indented(printable(`${shown}: ${checked.join(", ")}`)));
  const left = missed.map(({ what, why }) => indented(printable(`${what}: ${why}`)));
  return [
    ...blocks,
    ...(looked.length === 0 ? [] : ["looked at\n", ...looked]),
    ...(left.length === 0 ? [] : ["not looked at\n", ...left]),
    counts.length === 0 ? paint("green", "nothing found") : paint("bold", counts.join(", ")),
    "\n",
  ].join("");
}

function diagnosisJson({ subjects, missed, findings }: Diagnosis): string {
  return jsonDocument({
    subjects: subjects.map(({ shown }) => shown),
    checked: subjects.map(({ shown, checked }) => ({ subject: shown, what: checked })),
    missed,
    errors: count(findings, "error"),
    warnings: count(findings, "warning"),
    findings: inOrder(findings).map(({ id, severity, subject, message }) => ({
      id,
      severity,
      subject,
      message,
      cause: causeOf(id),
      remedy: findingKinds[id][1],
    })),
  });
}

function inOrder(findings: readonly Finding[]): readonly Finding[] {
  return severities.flatMap((severity) => findings.filter((finding) => finding.severity === severity));
}

function count(findings: readonly Finding[], severity: Severity): number {
  return findings.filter((finding) => finding.severity === severity).length;
}
