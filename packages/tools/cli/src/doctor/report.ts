import { createPaint, jsonDocument, printable } from "../output.ts";
import { docsOfFinding, findingKinds, type Finding, type Severity } from "./findings.ts";

/** What a doctor has looked at, and found. */
export interface Diagnosis {
  /** What was looked at, as people see it. */
  readonly subjects: readonly string[];
  readonly findings: readonly Finding[];
}

const severities: readonly Severity[] = ["error", "warning", "info"];
const colours = { error: "red", warning: "yellow", info: "dim" } as const;

/** A report for people: what is worst comes first. */
export function diagnosisText({ subjects, findings }: Diagnosis, withColours: boolean): string {
  const paint = createPaint(withColours);
  const blocks = inOrder(findings).map(({ id, severity, subject, message }) =>
    [
      `${paint(colours[severity], severity)} ${paint("bold", id)}`,
      `  ${printable(`${subject}: ${message}`)}`,
      `  To do: ${findingKinds[id][1]}`,
      `  ${docsOfFinding(id)}\n`,
    ].join("\n"),
  );
  const counts = severities
    .map((severity) => ({ severity, found: count(findings, severity) }))
    .filter(({ found }) => found > 0)
    .map(({ severity, found }) => `${found} ${severity}${found > 1 && severity !== "info" ? "s" : ""}`);
  const summary = counts.length === 0 ? paint("green", "nothing found") : paint("bold", counts.join(", "));
  const looked = subjects.map((subject) => `looked at ${printable(subject)}`);
  return `${[...blocks, ...looked, summary].join("\n")}\n`;
}

/** A report for programs: one JSON document. */
export function diagnosisJson({ subjects, findings }: Diagnosis): string {
  return jsonDocument({
    subjects,
    errors: count(findings, "error"),
    warnings: count(findings, "warning"),
    findings: inOrder(findings).map(({ id, severity, subject, message }) => ({
      id,
      severity,
      subject,
      message,
      remedy: findingKinds[id][1],
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
