import { isIP } from "node:net";
import { createPayoutInstruction } from "@countersign/sandbox";
import {
  isObjectText,
  jsonWithTexts,
  payoutVariants,
  planPayout,
  runPayoutPlan,
  type PayoutPlan,
  type PayoutVariant,
  type TamperedPart,
} from "@countersign/sandbox/protocol";
import type { CommandIo, ExitCode, Switches, Texts } from "../command-io.ts";
import { exitCodes, messageOf, UsageError } from "../command-io.ts";
import { assertHttpAllowed, parseInteger, readNamedFile } from "../input.ts";
import { payoutJson, payoutText } from "./report.ts";
import type { TransportFlags } from "./transport.ts";
import { readExpected, readHeaders, readPrivateKey, sendOptionsOf } from "./transport.ts";

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
    Texts<"concurrent" | "target" | "localAddress">,
    Switches<"expired" | "future" | "replay" | "duplicate"> {
  readonly key: string;
  readonly keyid: string;
  readonly tamper?: TamperedPart | undefined;
}

/** Throws a UsageError before anything is sent. */
export async function runPayout(flags: PayoutFlags, io: CommandIo): Promise<ExitCode> {
  const { localAddress } = flags;
  if (localAddress !== undefined && isIP(localAddress) === 0) {
    throw new UsageError("--local-address: expected an IP address");
  }
  const sendOptions = { ...sendOptionsOf(flags), localAddress };
  const report = await runPayoutPlan(planOf(flags, io.clock), sendOptions);
  io.writeOut(flags.json === true ? payoutJson(report) : payoutText(report, io.colours));
  if (!report.reached) return exitCodes.unreachable;
  return report.asExpected ? exitCodes.asExpected : exitCodes.otherwise;
}

function planOf(flags: PayoutFlags, clock: () => number): PayoutPlan {
  const { url, target, keyid, allowHttp, concurrent } = flags;
  assertHttpAllowed("--url", url, allowHttp);
  const request = {
    url,
    target,
    bodyText: readBody(flags),
    privateKey: readPrivateKey(flags.key),
    keyid,
    headers: readHeaders(flags),
  };
  const count =
    concurrent === undefined ? undefined : parseInteger("--concurrent", concurrent, { min: 2, max: 500 });
  const expect = readExpected(flags);
  try {
    return planPayout({ variant: variantOf(flags), request, expect, count, clock });
  } catch (error) {
    // Before anything is sent, only the command line can be wrong.
    throw new UsageError(messageOf(error), { cause: error });
  }
}

/** The file's bytes, or a sample instruction with the given values, the amount as typed. Throws a UsageError. */
function readBody(flags: BodyFlags): Buffer {
  const { file, amount, idempotencyKey, businessId, iban, bic, name, reference, referenceField } = flags;
  if (file !== undefined) return readJsonFile(file);
  if (amount !== undefined && !isObjectText(amount)) {
    throw new UsageError(`--amount: is not JSON of an object such as {"value":"10.00","currency":"EUR"}`);
  }
  const fields = { idempotencyKey, businessId, iban, bic, name, reference, referenceField };
  const texts = amount === undefined ? {} : { amount };
  return Buffer.from(jsonWithTexts(createPayoutInstruction(fields), texts), "utf8");
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
  const chosen = payoutVariants.find(({ flag, value }) => {
    const got = flag === undefined ? undefined : given.get(flag);
    return value === undefined ? got !== undefined && got !== false : got === value;
  });
  return chosen?.variant ?? "plain";
}
