// The lending service of the soak: signs payouts, sends them, and writes down every answer.
import { buildPayoutRequest, createPayoutInstruction, sendPayout } from "@countersign/devtools/sandbox";
import { payoutPath } from "./engines.mjs";

// Longer than the lease, shorter than most sleeps: the retry finds the other process while the first owner still sleeps.
const patienceMs = 1_500;
// Leaves while the handler runs.
const impatienceMs = 20;
// Requests that can be sent again; older ones would be refused for their age, not for their nonce.
const replayable = 500;

/** `inspection` is asked about each key at the moment at which the platform says that it is paid. */
export function createClient({ platform, privateKey, keyid, random, inspection }) {
  const answers = [];
  const sent = [];
  const accepted = new Set();
  let lastKey = 0;

  const sendTo = async (request, details) => {
    const base = platform.anyUrl(random);
    const status =
      base === undefined
        ? 0
        : await exchange(
            { ...request, url: base + payoutPath },
            random.below(100) < 3 ? impatienceMs : patienceMs,
          );
    const { key } = details;
    const saysPaid = status === 409 || (status >= 200 && status < 300);
    const answer = { ...details, nonce: request.signature.nonce, status, unpaid: false, at: Date.now() };
    // I2 and I4, at the time: what is said to be paid is durable already.
    if (saysPaid) answer.unpaid = !(await inspection.isPaid(key));
    if (saysPaid) accepted.add(key);
    answers.push(answer);
    return answer;
  };

  const attempt = async (key, kind, amount = "10.00") => {
    const body = createPayoutInstruction({ idempotencyKey: key, amount: { value: amount, currency: "EUR" } });
    const request = buildPayoutRequest({ url: `http://127.0.0.1${payoutPath}`, body, privateKey, keyid });
    const answer = await sendTo(request, { key, kind });
    sent.push({ request, answer });
    if (sent.length > replayable) sent.shift();
    return answer;
  };

  return {
    answers,
    accepted,
    attempt,
    newKey: () => `payout-${++lastKey}.funding-1.business-1`,
    someKey: () => `payout-${1 + random.below(Math.max(1, lastKey))}.funding-1.business-1`,
    allKeys: () => Array.from({ length: lastKey }, (_, index) => `payout-${index + 1}.funding-1.business-1`),
    /** The same bytes again, as somebody does who has overheard them. */
    async replay() {
      if (sent.length === 0) return;
      const { request, answer } = random.pick(sent);
      await sendTo(request, { key: answer.key, kind: "replay", firstStatus: answer.status });
    },
  };
}

// 0: no answer, which says nothing about what has happened.
async function exchange(request, timeoutMs) {
  try {
    const { status } = await sendPayout(request, { timeoutMs });
    return status;
  } catch (error) {
    if (error?.name === "PayoutSendError") return 0;
    throw error;
  }
}
