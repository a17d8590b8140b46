import type { PayoutRequest } from "./payout-request.ts";
import { sendRequest, type PayoutAnswer, type SendOptions } from "./send-request.ts";

/**
 * Sends a request exactly as it was built: the target as it is, one line for each header field, no redirect followed, certificates
 * always verified. Resolves with any HTTP answer; rejects with a PayoutSendError when there was none.
 */
export function sendPayout(
  request: Omit<PayoutRequest, "signature">,
  options: SendOptions = {},
): Promise<PayoutAnswer> {
  const { timeoutMs = 10_000 } = options;
  if (!(timeoutMs > 0 && timeoutMs <= 2_147_483_647)) {
    throw new TypeError(`sendPayout: option timeoutMs must be milliseconds above 0, got ${timeoutMs}`);
  }
  return sendRequest(request, options);
}
