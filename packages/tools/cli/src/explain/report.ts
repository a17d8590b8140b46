import type { Explanation, SignatureExplanation } from "@countersign/explain";
import { docsOf } from "@countersign/core";
import { printable } from "../output.ts";

/** What was found out about one check. */
export type Explained = Explanation & {
  readonly check: "digest" | "hmac" | "signature";
} & Partial<Pick<SignatureExplanation, "attempts" | "difference" | "expectedBase" | "signerBase">>;

/** The explanations for people: the first sentence first, then the code with its page, then the bases. */
export function formatExplanations(explained: readonly Explained[]): string {
  return printable(explained.map(formatOne).join("\n"));
}

function formatOne(explained: Explained): string {
  const { check, sentence, what, code, details, expectedBase, signerBase, difference } = explained;
  const page = code === undefined ? undefined : docsOf(code);
  const lines = [`${check}: ${sentence}`];
  if (code !== undefined) lines.push(`  what    ${what}`, `  code    ${code}`);
  if (page !== undefined) lines.push(`  page    ${page}`);
  for (const detail of details) lines.push(`  also    ${detail}`);
  if (code !== undefined && expectedBase !== undefined)
    lines.push("", ...block("expected base", expectedBase));
  if (signerBase !== undefined) lines.push("", ...block("signer's base", signerBase));
  if (difference !== undefined) {
    const {
      line,
      column,
      expected = "(no such line, or not shown)",
      signer = "(no such line, or not shown)",
    } = difference;
    lines.push(
      "",
      `  first difference: line ${line}, character ${column}`,
      `    expected  ${expected}`,
      `    signer    ${signer}`,
    );
  }
  return `${lines.join("\n")}\n`;
}

function block(title: string, base: string): readonly string[] {
  return [`  ${title}, control characters visible:`, ...base.split("\n").map((line) => `    ${line}`)];
}
