import type { KeyObject } from "node:crypto";
import { writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { createPayoutInstruction, type buildPayoutRequest } from "@countersign/devtools/sandbox";
import { jsonTexts, payoutPlans, type PayoutVariant } from "@countersign/devtools/internal";
import type { CommandIo, ExitCode, Switches, Texts } from "../command-io.ts";
import { codeOf, exitCodes, messageOf, UsageError } from "../command-io.ts";
import { assertHttpAllowed, parseInteger, readNamedFile } from "../input.ts";
import { shellWord } from "../operator/key-text.ts";
import { printable } from "../output.ts";
import { explainPayout } from "./explain-sent.ts";
import { payoutJson, payoutText, type OutgoingRequest, type Spoilt } from "./report.ts";
import type { TransportFlags } from "./transport.ts";
import { readExpected, readForwardedFor, readHeaders, readPrivateKey, sendOptionsOf } from "./transport.ts";

type BodyFlags = Texts<
  | "file"
  | "idempotencyKey"
  | "businessId"
  | "iban"
  | "bic"
  | "name"
  | "amount"
  | "reference"
  | "referenceField"
>;

export interface PayoutFlags
  extends
    BodyFlags,
    TransportFlags,
    Texts<"concurrent" | "target" | "localAddress" | "save">,
    Switches<"expired" | "future" | "replay" | "duplicate"> {
  readonly key: string;
  readonly keyid: string;
  readonly tamper?: Parameters<typeof buildPayoutRequest>[0]["tamper"];
}

/** Throws a UsageError before anything is sent. */
export async function runPayout(flags: PayoutFlags, io: CommandIo): Promise<ExitCode> {
  const { localAddress } = flags;
  if (localAddress !== undefined && isIP(localAddress) === 0) {
    throw new UsageError("--local-address: expected an IP address");
  }
  const sendOptions = { ...sendOptionsOf(flags), localAddress };
  const privateKey = readPrivateKey(flags.key);
  const report = await payoutPlans.run(planOf(flags, privateKey, io.clock), sendOptions);
  const shown = report.outcomes.find(({ asExpected }) => !asExpected) ?? report.outcomes.at(-1);
  if (flags.save !== undefined && shown !== undefined) saveRequest(flags.save, shown.request);
  const spoilt = shown && (await spoiltOf(flags, shown.request, privateKey));
  const { colours } = io;
  io.writeOut(flags.json === true ? payoutJson(report, spoilt) : payoutText(report, { colours, spoilt }));
  if (flags.json !== true && shown?.asExpected === false && shown.answer?.status === 401)
    io.writeOut(nextSteps(flags));
  if (!report.reached) return exitCodes.unreachable;
  return report.asExpected ? exitCodes.asExpected : exitCodes.otherwise;
}

async function spoiltOf(
  { tamper, keyid }: PayoutFlags,
  request: ReturnType<typeof buildPayoutRequest>,
  privateKey: KeyObject,
): Promise<Spoilt | undefined> {
  if (tamper === undefined) return undefined;
  const { sends = tamper } = payoutPlans.variants.find(({ value }) => value === tamper) ?? {};
  return { sends, explained: await explainPayout(request, { keyid, privateKey }) };
}

/** As it went over the wire. It can be sent again until it expires: for its owner alone. */
function saveRequest(file: string, { method, url, target, headers, bodyBytes }: OutgoingRequest): void {
  const isNamed = Object.keys(headers).some((name) => name.toLowerCase() === "host");
  const host = isNamed ? {} : { Host: new URL(url).host };
  const fields = { ...host, ...headers, "Content-Length": String(bodyBytes.length) };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `${method} ${target} HTTP/1.1\r\n${lines.join("")}\r\n`;
  try {
    writeFileSync(file, Buffer.concat([Buffer.from(head, "latin1"), bodyBytes]), { mode: 0o600 });
  } catch (error) {
    throw new UsageError(`--save ${file}: cannot be written (${codeOf(error)})`, { cause: error });
  }
}

const savedFile = "request.http";

/** A 401 tells its reader nothing: what does. */
function nextSteps({ url, key, keyid, save, allowHttp, forwardedFor }: PayoutFlags): string {
  // Where keygen puts it.
  const publicKey = key.endsWith(".private.pem") ? key.replace(/private\.pem$/, "public.pem") : "public.pem";
  const allowed = allowHttp === true ? " --allow-http" : "";
  const steps = [
    "",
    "A 401 does not say why. The platform's log has a code, and its inspector the",
    "request. What the code means:",
    "  countersign code <code>",
    ...(forwardedFor === undefined
      ? [
          "If it is ip-is-proxy or ip-not-allowed, the platform may trust this machine as",
          "its proxy: send the payout as that proxy, from an address that is allowed:",
          "  --forwarded-for 192.0.2.10",
          "A proxy in between replaces that: through one, --local-address.",
        ]
      : []),
    "Whether the platform is set up right:",
    `  countersign doctor --url ${shellWord(url)}${allowed}`,
    save === undefined
      ? `What is wrong with the request, sent again with --save ${savedFile}:`
      : "What is wrong with the request:",
    `  countersign explain ${shellWord(save ?? savedFile)} --key ${shellWord(`${keyid}=${publicKey}`)}`,
  ];
  return `${printable(steps.join("\n"))}\n`;
}

function planOf(
  flags: PayoutFlags,
  privateKey: KeyObject,
  clock: () => number,
): ReturnType<typeof payoutPlans.make> {
  const { url, target, keyid, allowHttp, concurrent } = flags;
  assertHttpAllowed("--url", url, allowHttp);
  const request = {
    url,
    target,
    bodyText: readBody(flags),
    privateKey,
    keyid,
    headers: readHeaders(flags),
    forwardedFor: readForwardedFor(flags),
  };
  const count =
    concurrent === undefined ? undefined : parseInteger("--concurrent", concurrent, { min: 2, max: 500 });
  const expect = readExpected(flags);
  try {
    return payoutPlans.make({ variant: variantOf(flags), request, expect, count, clock });
  } catch (error) {
    // Before anything is sent, only the command line can be wrong.
    throw new UsageError(messageOf(error), { cause: error });
  }
}

/** The file's bytes, or a sample instruction with the given values, the amount as typed. Throws a UsageError. */
function readBody(flags: BodyFlags): Buffer {
  const { file, amount, idempotencyKey, businessId, iban, bic, name, reference, referenceField } = flags;
  if (file !== undefined) return readJsonFile(file);
  if (amount !== undefined && !jsonTexts.isObject(amount)) {
    throw new UsageError(`--amount: is not JSON of an object such as {"value":"10.00","currency":"EUR"}`);
  }
  const fields = { idempotencyKey, businessId, iban, bic, name, reference, referenceField };
  const texts = amount === undefined ? {} : { amount };
  return Buffer.from(jsonTexts.write(createPayoutInstruction(fields), texts), "utf8");
}

function readJsonFile(file: string): Buffer {
  const bytes = readNamedFile("--file", file);
  try {
    JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return bytes;
  } catch (error) {
    throw new UsageError(`--file ${file}: is not JSON in UTF-8`, { cause: error });
  }
}

function variantOf(flags: PayoutFlags): PayoutVariant {
  const given = new Map<string, unknown>(Object.entries(flags));
  const chosen = payoutPlans.variants.find(({ flag, value }) => {
    const got = flag === undefined ? undefined : given.get(flag);
    return value === undefined ? got !== undefined && got !== false : got === value;
  });
  return chosen?.variant ?? "plain";
}
