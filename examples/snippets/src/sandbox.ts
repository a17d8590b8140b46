import {
  buildPayoutRequest,
  createPayoutInstruction,
  generateKeyPair,
  sendPayout,
} from "@countersign/sandbox";

const { keyid, publicKeyPem, privateKeyPem } = generateKeyPair();

/** What the platform under test has to know. */
export const keys = { [keyid]: publicKeyPem };

/** Sends one sample payout as the lending service would, and returns the platform's status. */
export async function payOnce(url: string): Promise<number> {
  const body = createPayoutInstruction({ idempotencyKey: "payout-1.funding-1.business-1" });
  const request = buildPayoutRequest({ url, body, privateKey: privateKeyPem, keyid });
  const { status } = await sendPayout(request, { timeoutMs: 5000 });
  return status;
}
