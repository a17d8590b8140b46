import { fieldLines, secretFault } from "@countersign/core/internal";
import {
  explainDigest,
  explainHmac,
  explainSignature,
  type Explanation,
  type ExplainHmacOptions,
  type ExplainSignatureOptions,
  type SignatureExplanation,
} from "../explain/index.ts";
import { allCodes } from "../explain/codes.ts";
import type { VerificationKey } from "@countersign/http-message-signatures";
import { importKeys, importVerificationKey, parseSignatureInput } from "@countersign/http-message-signatures";
import { keyDocuments } from "@countersign/http-message-signatures/internal";
import path from "node:path";
import type { CommandIo, Lists, Switches, Texts } from "../command-io.ts";
import { exitCodes, inWordsOfFlags, UsageError, usageErrorOf } from "../command-io.ts";
import { parseInteger, readNamedFile, readStandardInput } from "../input.ts";
import { jsonDocument, printable } from "../output.ts";
import { type CapturedRequest, readCapture } from "./read-capture.ts";

export interface ExplainFlags
  extends
    Texts<"data" | "keys" | "webhook" | "components" | "origin" | "pathPrefix" | "signerBase" | "now">,
    Lists<"key" | "secretEnv">,
    Switches<"json"> {}

export async function runExplain(file: string | undefined, flags: ExplainFlags, io: CommandIo) {
  const content = file === undefined ? readStandardInput() : readNamedFile("explain", file);
  const data = flags.data === undefined ? undefined : readNamedFile("--data", flags.data);
  const request = readCapture(content, data);
  const explained = await explain(request, flags, io);
  const notes = [...request.notes, ...notLookedAt(request, explained, flags, io)];
  for (const note of notes) io.writeError(`note: ${printable(note)}\n`);
  io.writeOut(flags.json === true ? jsonDocument({ explained }) : formatExplanations(explained));
  return explained.every(({ what }) => what === "verifies") ? exitCodes.asExpected : exitCodes.otherwise;
}

/** What a platform also looks at: who reads that all is well has a 401 all the same. */
function notLookedAt(
  { rawHeaders }: CapturedRequest,
  explained: readonly Explained[],
  { now }: ExplainFlags,
  io: CommandIo,
): string[] {
  const has = (check: string): boolean => explained.some((each) => each.check === check);
  if (has("digest") && fieldLines({ rawHeaders }, "signature-input").length > 0)
    return ["the signature was not looked at; give the public key by --key or --keys."];
  const verifies = explained.some(({ check, what }) => check === "signature" && what === "verifies");
  const created = createdOf(rawHeaders);
  if (!verifies || now !== undefined || created === undefined) return [];
  const late = Math.max(0, io.clock() - created);
  const old = `the clock was taken to be at created, ${late} s behind this machine's clock`;
  const answer = late > shortestWindow ? ", at which a platform can answer signature-expired" : "";
  return [`${old}${answer}; --now sets the time of the platform.`];
}

/** Without keys and secrets it explains only the digest. Throws a UsageError. */
async function explain(
  request: CapturedRequest,
  flags: ExplainFlags,
  io: CommandIo,
): Promise<readonly Explained[]> {
  const keys = keysOf(flags);
  const secrets = secretsOf(flags);
  const explained: Explained[] = [];
  try {
    if (keys.size > 0) {
      const options = { ...signatureOptions(flags), keys, clock: clockOf(request, flags, io) };
      explained.push({ check: "signature", ...(await explainSignature(request, options)) });
    }
    if (secrets.length > 0) explained.push({ check: "hmac", ...(await hmacOf(request, secrets, flags)) });
  } catch (error) {
    throw error instanceof TypeError ? usageErrorOf(error) : error;
  }
  if (explained.length > 0) return explained;
  if (fieldLines(request, "content-digest").length === 0) {
    throw new UsageError("give the public key by --key or --keys, or the secret by --secret-env");
  }
  return [{ check: "digest", ...(await explainDigest(request, request.body)) }];
}

async function hmacOf(
  { rawHeaders, body }: CapturedRequest,
  secrets: readonly string[],
  { webhook, now }: ExplainFlags,
): Promise<Explanation> {
  if (body === undefined) {
    throw new UsageError(
      "--secret-env: the capture does not have the body, which is signed; give its file by --data",
    );
  }
  const clock = now === undefined ? { atItsTime: true } : webhook && { clock: () => secondsOf(now) * 1000 };
  // The factory that has the list of schemes checks it.
  const options = { secrets, ...clock, ...(webhook !== undefined && { scheme: webhook }) };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- verifyPayload refuses a name that it does not know
  return explainHmac({ rawHeaders }, body, options as ExplainHmacOptions);
}

function signatureOptions({
  components,
  origin,
  pathPrefix,
  signerBase,
}: ExplainFlags): Partial<ExplainSignatureOptions> {
  return {
    algorithms: ["ed25519", "ecdsa-p256-sha256", "ecdsa-p384-sha384", "rsa-pss-sha512", "rsa-v1_5-sha256"],
    requiredComponents: components?.split(",").map((name) => name.trim()),
    origin,
    pathPrefix,
    signerBase:
      signerBase === undefined ? undefined : readNamedFile("--signer-base", signerBase).toString("utf8"),
  };
}

function keysOf({ key = [], keys }: ExplainFlags): ReadonlyMap<string, VerificationKey> {
  const all = new Map<string, VerificationKey>();
  if (keys !== undefined) {
    const name = path.basename(keys);
    const keyid = keyDocuments.keyidOfFile(name) ?? path.parse(name).name;
    const content = readNamedFile("--keys", keys);
    const imported = inWordsOfFlags(() => importKeys(content, { keyid }));
    for (const [id, each] of imported.keys) all.set(id, each);
    if (all.size === 0) throw new UsageError(`--keys ${keys}: holds no key that can be used`);
  }
  for (const text of key) {
    const [keyid = "", ...file] = text.split("=");
    if (keyid === "" || file.length === 0) throw new UsageError("--key: expected keyid=file");
    const content = readNamedFile("--key", file.join("="));
    all.set(
      keyid,
      inWordsOfFlags(() => importVerificationKey(keyid, content)),
    );
  }
  return all;
}

function secretsOf({ secretEnv = [] }: ExplainFlags): readonly string[] {
  return secretEnv.map((name) => {
    const secret = process.env[name];
    if (secret === undefined || secret === "")
      throw new UsageError(`--secret-env: the variable ${name} is not set`);
    const fault = secretFault(secret);
    if (fault !== undefined) throw new UsageError(`--secret-env: the variable ${name} ${fault}`);
    return secret;
  });
}

function secondsOf(text: string): number {
  return parseInteger("--now", text, { min: 0, max: 99_999_999_999 });
}

/** A capture is always late: the default is the time at which the signature was created, unless that is still to come. */
function clockOf({ rawHeaders }: CapturedRequest, { now }: ExplainFlags, io: CommandIo): () => number {
  const captured = Math.min(createdOf(rawHeaders) ?? Infinity, io.clock());
  const seconds = now === undefined ? captured : secondsOf(now);
  return () => seconds * 1000;
}

// The spec's, in seconds; what a signature says of itself may be longer.
const shortestWindow = 60;

// Later values are milliseconds, a mistake of their own.
const latest = 99_999_999_999;

function createdOf(rawHeaders: readonly string[]): number | undefined {
  try {
    const [input] = parseSignatureInput(fieldLines({ rawHeaders }, "signature-input")[0] ?? "").values();
    const created = input?.parameters.get("created");
    return created?.type === "integer" && created.value <= latest ? created.value : undefined;
  } catch {
    return undefined;
  }
}

type Explained = Explanation & {
  readonly check: "digest" | "hmac" | "signature";
} & Partial<Pick<SignatureExplanation, "attempts" | "difference" | "expectedBase" | "signerBase">>;

function formatExplanations(explained: readonly Explained[]): string {
  return printable(explained.map(formatOne).join("\n"));
}

function formatOne(explained: Explained): string {
  const { check, sentence, what, code, details, expectedBase, signerBase, difference } = explained;
  const remedy = code === undefined || isSpecific(what, code) ? undefined : allCodes().get(code)?.remedy;
  const lines = [`${check}: ${sentence}`];
  if (what !== "verifies") lines.push(`  what    ${what}`);
  if (code !== undefined) lines.push(`  code    ${code}`);
  if (remedy !== undefined) lines.push(`  to do   ${remedy}`);
  for (const detail of details) lines.push(`  also    ${detail}`);
  if (expectedBase !== undefined) lines.push("", ...block("expected base", expectedBase));
  if (signerBase !== undefined) lines.push("", ...block("signer's base", signerBase));
  if (difference !== undefined) {
    const none = "(no such line, or not shown)";
    const { line, column, expected = none, signer = none } = difference;
    lines.push(
      "",
      `  first difference: line ${line}, character ${column}`,
      `    expected  ${expected}`,
      `    signer    ${signer}`,
    );
  }
  return `${lines.join("\n")}\n`;
}

/** Whether the sentence names what to change, so that the general remedy of the code would lead away from it. */
function isSpecific(what: string, code: string): boolean {
  return what !== code && what !== "hmac-wrong-secret" && !what.endsWith("-unexplained");
}

function block(title: string, base: string): readonly string[] {
  return [`  ${title}, control characters visible:`, ...base.split("\n").map((line) => `    ${line}`)];
}
