import { createPayoutInstruction, generateKeyPair } from "@countersign/devtools/sandbox";
import { payoutPlans, type PayoutVariant } from "@countersign/devtools/internal";

type SigningKeyPair = ReturnType<typeof generateKeyPair>;

/** One line of the demo's table. */
export interface CaseResult {
  readonly name: string;
  readonly expected: string;
  readonly got: string;
  readonly ok: boolean;
}

/** Prints the result of a case. */
export type Report = (result: CaseResult) => void;

/** What the cases are sent with. */
export interface DemoTarget {
  /** URL of the payout route. */
  readonly url: string;
  /** The payout route of a second listener, which believes X-Forwarded-For and allows one address. */
  readonly proxiedUrl: string;
  readonly key: SigningKeyPair;
}

/** The only address that a platform behind a proxy allows (RFC 5737). */
export const listedIp = "203.0.113.7";
const unlistedIp = "198.51.100.7";

/** A payout that is sent in some way, and the answers that it should get. */
type InstructionOptions = NonNullable<Parameters<typeof createPayoutInstruction>[0]>;

export interface DemoCase extends InstructionOptions {
  readonly name: string;
  readonly expected: string;
  readonly variant?: PayoutVariant;
  readonly signer?: SigningKeyPair;
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends every case but the restart, one after the other. `goodKey` is paid by the first. */
export async function runCases(target: DemoTarget, goodKey: string, report: Report): Promise<void> {
  for (const one of cases(target, goodKey)) {
    // oxlint-disable-next-line no-await-in-loop -- later cases depend on earlier ones
    report(await runCase(target, one));
  }
}

/** The case that follows a restart: the key was paid by the process that is gone. */
export function runPaidKeyAgain(target: DemoTarget, goodKey: string): Promise<CaseResult> {
  return runCase(target, { name: "the same key after a crash", expected: "409", idempotencyKey: goodKey });
}

function cases({ proxiedUrl, key }: DemoTarget, goodKey: string): readonly DemoCase[] {
  const from = (ip: string): Pick<DemoCase, "url" | "headers"> => ({
    url: proxiedUrl,
    headers: { "X-Forwarded-For": ip },
  });
  return [
    { name: "a good payout", expected: "200", idempotencyKey: goodKey },
    { name: "the same key again", expected: "409", idempotencyKey: goodKey },
    { name: "a replayed nonce", expected: "200 401", variant: "replay" },
    { name: "a tampered body", expected: "401", variant: "tamper-body" },
    { name: "a tampered signature", expected: "401", variant: "tamper-signature" },
    { name: "an expired signature", expected: "401", variant: "expired" },
    { name: "a signature of the future", expected: "401", variant: "future" },
    { name: "an unknown keyid", expected: "401", signer: generateKeyPair({ keyid: "unknown" }) },
    { name: "a known keyid, another key", expected: "401", signer: generateKeyPair({ keyid: key.keyid }) },
    { name: "an unlisted IP", expected: "401", ...from(unlistedIp) },
    { name: "a listed IP", expected: "200", ...from(listedIp) },
    { name: "an unknown IBAN", expected: "400", iban: "GB82WEST12345698765432" },
    { name: "a malformed key", expected: "400", idempotencyKey: "only.two" },
    { name: "two at once with one key", expected: "200 409|503", variant: "concurrent" },
  ];
}

/** Sends the payout of a case, by default to the route of `target`. */
export async function runCase(target: Pick<DemoTarget, "url" | "key">, one: DemoCase): Promise<CaseResult> {
  const {
    name,
    expected,
    variant = "plain",
    signer = target.key,
    url = target.url,
    headers,
    ...instruction
  } = one;
  const plan = payoutPlans.make({
    variant,
    request: {
      url,
      headers,
      body: createPayoutInstruction(instruction),
      privateKey: signer.privateKeyPem,
      keyid: signer.keyid,
    },
  });
  const got = answersOf(await payoutPlans.run(plan));
  return { name, expected, got, ok: new RegExp(`^${patternOf(expected)}$`).test(got) };
}

function answersOf({ variant, outcomes }: Awaited<ReturnType<typeof payoutPlans.run>>): string {
  const answers = outcomes.map(({ answer, error }) =>
    answer === undefined ? (error?.code ?? "none") : String(answer.status),
  );
  // Sent at once, the answers come in any order.
  if (variant !== "concurrent") return answers.join(" ");
  const paid = answers.filter((answer) => answer === "200");
  return [...paid, ...answers.filter((answer) => answer !== "200")].join(" ");
}

function patternOf(expected: string): string {
  return expected
    .split(" ")
    .map((status) => `(?:${status})`)
    .join(" ");
}
