import { createPublicKey } from "node:crypto";
import { masking } from "../../loopback/index.ts";
import { generateKeyPair, importPrivateKey } from "../key-pair.ts";
import {
  createPayoutInstruction,
  sampleBusiness,
  type PayoutInstructionOptions,
} from "../payout-instruction.ts";
import { jsonWithTexts } from "../json-text.ts";
import { isFoundBy, type Searched } from "../search.ts";
import { planPayout, runPayoutPlan, type PayoutOutcome } from "../payout-plan.ts";
import { payoutVariants, type PayoutVariant } from "../payout-variants.ts";
import { refuseTypeErrors } from "../service/sandbox-error.ts";
import { explainStatus } from "../status.ts";
import { targetOf } from "../delivery/webhook-request.ts";
import type { PageOptions } from "./page-options.ts";

export interface PayoutOrder {
  readonly url: string;
  readonly variant: PayoutVariant;
  /** Of the variant `concurrent`. */
  readonly count?: number | undefined;
  readonly fields: Omit<PayoutInstructionOptions, "amount"> & {
    /** A text is the JSON of an object, sent byte for byte. */
    readonly amount?: PayoutInstructionOptions["amount"] | string;
  };
}

export interface SentPayout extends PayoutOrder {
  readonly number: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly asExpected: boolean;
  /** Whether this URL took the last unspoilt request (2xx): one that refuses everything proves nothing. */
  readonly isUrlProven: boolean;
  readonly steps: readonly ReturnType<typeof stepOf>[];
}

/** Signs and sends payouts for the page; remembers the last two hundred. */
export type PayoutDesk = ReturnType<typeof createPayoutDesk>;

export interface PayoutDeskInit {
  readonly allowHttp: boolean | "loopback";
  readonly ca: string | Buffer | undefined;
  readonly forwardedFor: string | undefined;
  readonly clock: () => number;
  readonly mask: ReturnType<typeof masking.of>;
  readonly changed: () => void;
}

const kept = 200;
const shownBytes = 16_384;

/** Makes a key pair when the options have none. Throws a TypeError for an unfit key. */
export function createPayoutDesk(options: PageOptions, init: PayoutDeskInit) {
  const made = generateKeyPair({ keyid: options.keyid });
  const privateKey = importPrivateKey(options.privateKey ?? made.privateKeyPem);
  const { keyid } = made;
  const sent: SentPayout[] = [];
  const provenUrls = new Map<string, boolean>();
  let number = 0;
  return {
    /** Initial values of the composer: no private key. */
    about: {
      url: options.payoutUrl ?? "http://127.0.0.1:3000/api/v1/transaction",
      keyid,
      publicKeyPem: createPublicKey(privateKey).export({ type: "spki", format: "pem" }).toString(),
      keyFile: options.keyFile ?? `${keyid}.private.pem`,
      forwardedFor: init.forwardedFor,
      variants: payoutVariants,
      sample: sampleBusiness,
    },
    /** Rejects with a SandboxError on what cannot be sent. */
    async send(order: PayoutOrder): Promise<SentPayout> {
      const { amount, ...others } = order.fields;
      const [given, texts] = typeof amount === "string" ? [{}, { amount }] : [amount, {}];
      const instruction = createPayoutInstruction({ ...others, amount: given });
      const bodyText = jsonWithTexts(instruction, texts);
      const fields = { ...order.fields, idempotencyKey: instruction.idempotency_key };
      const plan = refuseTypeErrors(() => {
        targetOf(order.url, init.allowHttp);
        const { url, variant, count } = order;
        const { forwardedFor } = init;
        return planPayout({ variant, count, request: { url, bodyText, privateKey, keyid, forwardedFor } });
      });
      const at = init.clock();
      const { asExpected, outcomes } = await runPayoutPlan(plan, {
        ca: init.ca,
        bodyLimitBytes: shownBytes + masking.marginBytes,
      });
      number += 1;
      const unspoilt = outcomes.filter(({ expected }) => expected.includes("2xx"));
      if (unspoilt.length > 0) provenUrls.set(order.url, unspoilt.some(isAccepted));
      const payout = {
        ...order,
        fields,
        number,
        at,
        asExpected,
        isUrlProven: provenUrls.get(order.url) ?? false,
        steps: outcomes.map((outcome) => stepOf(outcome, init.mask)),
      };
      sent.unshift(payout);
      sent.splice(kept);
      init.changed();
      return payout;
    },
    /** Newest first; those that hold a text, default all. */
    list: (search = ""): readonly SentPayout[] =>
      sent.filter((payout) => isFoundBy(search, searchedOf(payout))),
  };
}

function isAccepted({ answer }: PayoutOutcome): boolean {
  return answer !== undefined && answer.status >= 200 && answer.status <= 299;
}

function searchedOf({ number, variant, url, steps }: SentPayout): Searched {
  return {
    texts: [`#${number}`, variant, url, ...steps.map(({ request }) => request.body)],
    answers: steps.map(({ answer, error }) => answer?.status ?? error?.code),
  };
}

function stepOf({ request, answer, error, ...step }: PayoutOutcome, mask: PayoutDeskInit["mask"]) {
  const { method, target, headers, bodyBytes, signature } = request;
  return {
    ...step,
    request: {
      method,
      target,
      headers: Object.entries(headers),
      body: bodyBytes.subarray(0, shownBytes).toString("utf8"),
      bodyBytes: bodyBytes.length,
      signatureBase: signature.signatureBase,
    },
    answer: answer && {
      status: answer.status,
      meaning: explainStatus(answer.status, answer.body),
      headers: Object.entries(answer.headers).map(([field, value]) => [field, String(value)]),
      // Half a secret at its end would not be found.
      body: mask(answer.body).slice(0, shownBytes),
      durationMs: answer.durationMs,
    },
    error: error && { code: error.code, message: error.message },
  };
}
