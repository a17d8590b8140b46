import type { CommandIo } from "../command-io.ts";
import { jsonDocument } from "../json-output.ts";
import { createPaint } from "../paint.ts";
import { printable } from "../printable.ts";
import { wrap } from "../table.ts";
import { docsOfFinding, findingKinds, type Finding, type Severity } from "./findings.ts";

/** What a doctor has looked at, and found. */
export interface Diagnosis {
  /** What was looked at, as people see it. */
  readonly subjects: readonly string[];
  readonly findings: readonly Finding[];
}

const severities: readonly Severity[] = ["error", "warning", "info"];
const colours = { error: "red", warning: "yellow", info: "dim" } as const;
const proseColumns = 100;
const indent = 2;

/** A report for people: what is worst comes first. */
export function formatDiagnosis({ subjects, findings }: Diagnosis, io: CommandIo): string {
  const paint = createPaint(io.colours);
  // In a pipe a sentence is one line, for grep.
  const width = io.columns === undefined ? Infinity : Math.min(io.columns, proseColumns) - indent;
  const prose = (text: string): string[] => wrap(printable(text), width).map((line) => `  ${line}`);
  const blocks = inOrder(findings).map(({ id, severity, subject, message }) =>
    [
      `${paint(colours[severity], severity)} ${paint("bold", id)}`,
      ...prose(`${subject}: ${message}`),
      ...prose(`To do: ${findingKinds[id].remedy}`),
      `  ${docsOfFinding(id)}`,
    ].join("\n"),
  );
  const summary = paint(findings.length === 0 ? "green" : "bold", summaryOf(findings));
  const looked = subjects.flatMap((subject) => wrap(`looked at ${printable(subject)}`, width));
  return `${[...blocks.map((block) => `${block}\n`), ...looked, summary].join("\n")}\n`;
}

/** A report for programs: one JSON document. */
export function diagnosisToJson({ subjects, findings }: Diagnosis): string {
  return jsonDocument({
    subjects,
    errors: count(findings, "error"),
    warnings: count(findings, "warning"),
    findings: inOrder(findings).map(({ id, severity, subject, message }) => ({
      id,
      severity,
      subject,
      message,
      remedy: findingKinds[id].remedy,
      page: docsOfFinding(id),
    })),
  });
}

function inOrder(findings: readonly Finding[]): readonly Finding[] {
  return severities.flatMap((severity) => findings.filter((finding) => finding.severity === severity));
}

function count(findings: readonly Finding[], severity: Severity): number {
  return findings.filter((finding) => finding.severity === severity).length;
}

function summaryOf(findings: readonly Finding[]): string {
  if (findings.length === 0) return "nothing found";
  return severities
    .map((severity) => ({ severity, found: count(findings, severity) }))
    .filter(({ found }) => found > 0)
    .map(({ severity, found }) => `${found} ${severity}${found > 1 && severity !== "info" ? "s" : ""}`)
    .join(", ");
}
