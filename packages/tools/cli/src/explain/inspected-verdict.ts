import { readCapped } from "@countersign/service-client";
import { z } from "zod";
import { exitCodes, UsageError, type CommandIo, type ExitCode } from "../command-io.ts";
import { answerLimitBytes } from "../input.ts";
import { jsonDocument } from "../json-output.ts";
import { printable } from "../printable.ts";
import { formatExplanations, type Explained } from "./report.ts";

/** What names a verdict of an inspector that runs. */
export interface InspectedFlags {
  readonly verdict?: string | undefined;
  /** The address of its page, with the token. */
  readonly inspector?: string | undefined;
  readonly json?: boolean | undefined;
}

const optional = z.string().optional();
const explanation = z.object({
  what: z.string(),
  sentence: z.string(),
  code: optional,
  details: z.array(z.string()),
});
const answer = z.object({
  id: z.number(),
  at: z.number(),
  method: z.string(),
  target: z.string(),
  outcome: z.enum(["pass", "reject", "error"]),
  status: z.number().optional(),
  verdicts: z.array(
    z.object({
      id: z.string(),
      guard: z.string(),
      outcome: z.string(),
      code: optional,
      durationMs: z.number().optional(),
    }),
  ),
  explanations: z.array(explanation.extend({ guard: z.string() })),
  bases: z.object({ expected: z.string() }).optional(),
  claim: explanation.optional(),
});
const refusal = z.object({ code: z.string() });

type InspectedRequest = z.infer<typeof answer>;

/** The inspector has no answer; the message is the one line that is shown. */
class InspectorError extends Error {
  override readonly name: string = "InspectorError";
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode = exitCodes.otherwise) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Asks an inspector that runs for the request of a verdict, and ends with 0 when it was admitted. */
export async function explainVerdict(flags: InspectedFlags, io: CommandIo): Promise<ExitCode> {
  const id = verdictOf(flags.verdict);
  const { origin, token } = addressOf(flags.inspector);
  try {
    const request = await ask(`${origin}/inspector/verdicts/${id}`, token);
    io.writeOut(flags.json === true ? jsonDocument({ request }) : formatRequest(request, id));
    return request.outcome === "pass" ? exitCodes.asExpected : exitCodes.otherwise;
  } catch (error) {
    if (!(error instanceof InspectorError)) throw error;
    io.writeError(`error: ${error.message}\n`);
    return error.exitCode;
  }
}

function verdictOf(verdict: string | undefined): string {
  const id = /^(?:urn:uuid:)?([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})$/i.exec(verdict ?? "")?.[1];
  if (id === undefined) throw new UsageError("--verdict: expected the id of a verdict, a UUID or urn:uuid:…");
  return id.toLowerCase();
}

/** The token is a secret of this machine: it goes nowhere else. */
function addressOf(address: string | undefined): { readonly origin: string; readonly token: string } {
  const parts = /^(http:\/\/(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]):\d{1,5})\/?#token=([\w-]+)$/.exec(
    address ?? "",
  );
  if (parts === null) {
    throw new UsageError(
      "--inspector: expected the address that inspector() gives as pageUrl, http://127.0.0.1:PORT/#token=…",
    );
  }
  return { origin: parts[1] ?? "", token: parts[2] ?? "" };
}

// An explanation tries up to 2,000 signatures.
const timeoutMs = 60_000;

async function ask(url: string, token: string): Promise<InspectedRequest> {
  const { status, document } = await fetched(url, token);
  const read = answer.safeParse(document);
  if (status === 200 && read.success) return read.data;
  const { data } = refusal.safeParse(document);
  switch (data?.code) {
    case "token-wrong":
      throw new InspectorError(
        "the token is that of another start of the inspector; copy the address that it gives now",
      );
    case "request-not-kept":
      throw new InspectorError(
        "the inspector keeps the request of this verdict no longer: newer ones have come; raise its option kept",
      );
    case "not-found":
      throw new InspectorError(
        "the inspector has not seen a verdict of this id: it is of another process, or of an earlier start",
      );
    default:
      throw new InspectorError(`what answers there is no inspector (status ${status}); check --inspector`);
  }
}

async function fetched(
  url: string,
  token: string,
): Promise<{ readonly status: number; readonly document: unknown }> {
  let response: Response;
  try {
    const headers = { "X-Page-Token": token };
    response = await fetch(url, { headers, redirect: "error", signal: AbortSignal.timeout(timeoutMs) });
  } catch {
    throw new InspectorError(
      `no inspector answers at ${new URL(url).origin}: the platform does not run, or does not call inspector()`,
      exitCodes.unreachable,
    );
  }
  const document = await documentOf(response).catch(() => undefined);
  return { status: response.status, document };
}

async function documentOf(response: Response): Promise<unknown> {
  const { bytes } = await readCapped(response, answerLimitBytes);
  return JSON.parse(bytes.toString("utf8"));
}

function formatRequest(request: InspectedRequest, verdictId: string): string {
  const { id, at, method, target, status, outcome, verdicts, explanations, bases, claim } = request;
  const answered = status === undefined ? "no answer yet" : `answered ${status}`;
  const head = `${method} ${target}: ${outcome}, ${answered} (request ${id}, ${new Date(at).toISOString()})`;
  const explained = explanations.map(({ guard, what, sentence, code, details }): Explained => {
    const expectedBase = guard === "httpSignatureVerify" ? bases?.expected : undefined;
    return { check: guard, what, sentence, code, details, expectedBase };
  });
  const width = Math.max(0, ...verdicts.map(({ guard }) => guard.length));
  const rows = verdicts.map(({ id: each, guard, outcome: said, code = "", durationMs }) => {
    const time = durationMs === undefined ? "" : `${durationMs.toFixed(2)} ms`;
    const mark = each === verdictId ? "  <- this one" : "";
    return `  ${said.padEnd(6)}  ${guard.padEnd(width)}  ${time.padStart(10)}  ${code}${mark}`.trimEnd();
  });
  return [
    `${printable(head)}\n`,
    ...(explained.length === 0 ? [] : [`\n${formatExplanations(explained)}`]),
    `\nverdicts:\n${printable(rows.join("\n"))}\n`,
    ...(claim === undefined ? [] : [`\nits key now: ${printable(claim.sentence)}\n`]),
  ].join("");
}
