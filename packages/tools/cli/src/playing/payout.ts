import { isIP } from "node:net";
import {
  payoutVariants,
  planPayout,
  runPayoutPlan,
  type PayoutPlan,
  type PayoutVariant,
  type TamperedPart,
} from "@countersign/sandbox/protocol";
import { exitCodes, UsageError, type CommandIo, type ExitCode } from "../command-io.ts";
import { parseInteger } from "../input.ts";
import { assertHttpAllowed } from "../plain-http.ts";
import { messageOf } from "../thrown.ts";
import {
  readBody,
  readExpected,
  readHeaders,
  readPrivateKey,
  sendOptionsOf,
  type BodyFlags,
  type TransportFlags,
} from "./payout-input.ts";
import { formatReport, reportToJson } from "./payout-report.ts";

/** The flags of `countersign payout`. */
export interface PayoutFlags extends BodyFlags, TransportFlags {
  readonly key: string;
  readonly keyid: string;
  readonly tamper?: TamperedPart | undefined;
  readonly expired?: boolean | undefined;
  readonly future?: boolean | undefined;
  readonly replay?: boolean | undefined;
  readonly duplicate?: boolean | undefined;
  readonly concurrent?: string | undefined;
  readonly target?: string | undefined;
  readonly localAddress?: string | undefined;
}

/** Sends what the flags say, and reports what became of it. Throws a UsageError before anything is sent. */
export async function runPayout(flags: PayoutFlags, io: CommandIo): Promise<ExitCode> {
  const { localAddress } = flags;
  if (localAddress !== undefined && isIP(localAddress) === 0) {
    throw new UsageError("--local-address: expected an IP address");
  }
  const sendOptions = { ...sendOptionsOf(flags), localAddress };
  const report = await runPayoutPlan(planOf(flags, io.clock), sendOptions);
  io.writeOut(flags.json === true ? reportToJson(report) : formatReport(report, io.colours));
  if (!report.reached) return exitCodes.unreachable;
  return report.asExpected ? exitCodes.asExpected : exitCodes.otherwise;
}

function planOf(flags: PayoutFlags, clock: () => number): PayoutPlan {
  assertHttpAllowed("--url", flags.url, flags.allowHttp);
  const request = {
    url: flags.url,
    target: flags.target,
    bodyText: readBody(bodyFlagsOf(flags)),
    privateKey: readPrivateKey(flags.key),
    keyid: flags.keyid,
    headers: readHeaders(flags),
  };
  const count =
    flags.concurrent === undefined
      ? undefined
      : parseInteger("--concurrent", flags.concurrent, { min: 2, max: 500 });
  const expect = readExpected(flags);
  try {
    return planPayout({ variant: variantOf(flags), request, expect, count, clock });
  } catch (error) {
    // Before anything is sent, all that can be wrong is what the command line said.
    throw new UsageError(messageOf(error), { cause: error });
  }
}

function bodyFlagsOf(flags: PayoutFlags): BodyFlags {
  const { file, idempotencyKey, businessId, iban, bic, name, amount, reference, referenceField } = flags;
  return { file, idempotencyKey, businessId, iban, bic, name, amount, reference, referenceField };
}

function variantOf(flags: PayoutFlags): PayoutVariant {
  const given = new Map<string, unknown>(Object.entries(flags));
  const chosen = payoutVariants.find(({ flag, value }) => {
    const got = flag === undefined ? undefined : given.get(flag);
    return value === undefined ? got !== undefined && got !== false : got === value;
  });
  return chosen?.variant ?? "plain";
}
