import { buildPayoutRequest, type PayoutRequest, type PayoutRequestOptions } from "./payout-request.ts";
import { payoutVariants, type PayoutVariant } from "./payout-variants.ts";
import { PayoutSendError } from "./send-error.ts";
import { sendPayout, type SendOptions } from "./send-request.ts";
import { matchesStatus } from "./status.ts";

/** Times, nonces and the spoilt part follow from the variant. */
export interface PayoutPlanOptions {
  /** Default `plain`. */
  readonly variant?: PayoutVariant | undefined;
  readonly request: Omit<PayoutRequestOptions, "created" | "expires" | "nonce" | "tamper">;
  /** Statuses that count as expected for the last request (of `concurrent`: for each). Default by variant. */
  readonly expect?: readonly string[] | undefined;
  /** Requests of the variant `concurrent`. Default 2. */
  readonly count?: number | undefined;
  /** Unix seconds. Default the system's clock. */
  readonly clock?: (() => number) | undefined;
}

interface PayoutStep {
  readonly name: string;
  /** Builds the request when it is sent, so that its signature is fresh. */
  readonly build: () => PayoutRequest;
  readonly expected: readonly string[];
}

export interface PayoutPlan {
  readonly variant: PayoutVariant;
  readonly steps: readonly PayoutStep[];
  /** Sends all steps at the same time, and accepts one 2xx at most. */
  readonly atOnce: boolean;
  /** Of requests sent at once, exactly one must be acknowledged. */
  readonly onePaid: boolean;
}

export type PayoutOutcome = Awaited<ReturnType<typeof runStep>>;

const acknowledged: readonly string[] = ["2xx"];

/** When the last request is signed, from now: beyond the window of 60 s plus the skew of 30 s. */
const offsetSeconds: Readonly<Partial<Record<PayoutVariant, number>>> = { expired: -120, future: 120 };

/** The requests of a payout and its variants, and how they are sent. */
export const payoutPlans = { variants: payoutVariants, make: planPayout, run: runPayoutPlan };

/** Throws what {@link buildPayoutRequest} throws, before anything is sent. */
export function planPayout(options: PayoutPlanOptions): PayoutPlan {
  const { variant = "plain", request, expect, count = 2, clock = systemClock } = options;
  const known = payoutVariants.find((one) => one.variant === variant);
  if (known === undefined) throw new TypeError("planPayout: option variant is none of the known variants");
  const expected = expect ?? known.expected;
  const build = (offset = 0): PayoutRequest =>
    buildPayoutRequest({ ...request, tamper: known.value, created: clock() + offset });
  const built = build(offsetSeconds[variant]);
  const plan = { variant, atOnce: false, onePaid: false };
  if (variant === "concurrent") {
    const steps = Array.from({ length: count }, (_, index) => ({
      name: `${index + 1}`,
      build: () => build(),
      expected,
    }));
    return { ...plan, steps, atOnce: true, onePaid: expect === undefined };
  }
  if (variant !== "replay" && variant !== "duplicate")
    return { ...plan, steps: [{ name: variant, build: () => built, expected }] };
  const first = { name: "first", build: () => built, expected: acknowledged };
  const again = variant === "replay" ? () => built : () => build();
  return { ...plan, steps: [first, { name: variant, build: again, expected }] };
}

/** Sends a plan's requests and compares the answers; `reached`: whether every request got one. One without an answer ends a plan of several steps; it is reported, not thrown. */
export async function runPayoutPlan(plan: PayoutPlan, options: SendOptions = {}) {
  const outcomes: PayoutOutcome[] = [];
  if (plan.atOnce) {
    outcomes.push(...(await Promise.all(plan.steps.map((step) => runStep(step, options)))));
  } else {
    for (const step of plan.steps) {
      // oxlint-disable-next-line no-await-in-loop -- the second request is the repetition of an answered one
      const outcome = await runStep(step, options);
      outcomes.push(outcome);
      if (outcome.error !== undefined) break;
    }
  }
  const paid = outcomes.filter(
    ({ answer }) => answer !== undefined && matchesStatus(answer.status, acknowledged),
  );
  return {
    variant: plan.variant,
    asExpected: outcomes.every((outcome) => outcome.asExpected) && (!plan.onePaid || paid.length === 1),
    reached: outcomes.every((outcome) => outcome.error === undefined),
    outcomes,
  };
}

async function runStep({ name, build, expected }: PayoutStep, options: SendOptions) {
  const request = build();
  const step = { name, request, expected };
  try {
    const answer = await sendPayout(request, options);
    return { ...step, asExpected: matchesStatus(answer.status, expected), answer, error: undefined };
  } catch (error) {
    if (!(error instanceof PayoutSendError)) throw error;
    return { ...step, asExpected: false, answer: undefined, error };
  }
}

function systemClock(): number {
  return Math.floor(Date.now() / 1000);
}
