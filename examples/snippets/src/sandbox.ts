import {
  buildPayoutRequest,
  createPayoutInstruction,
  generateKeyPair,
  sendPayout,
} from "@countersign/devtools/sandbox";

const { keyid, publicKeyPem, privateKeyPem: privateKey } = generateKeyPair();

/** What the platform under test has to know. */
export const keys = { [keyid]: publicKeyPem };

/**
 * Sends one payout as the lending service would, and returns the platform's
 * status.
 */
export async function payOnce(url: string): Promise<number> {
  const body = createPayoutInstruction({
    idempotencyKey: "payout-1.funding-1.business-1",
  });
  return (
    await sendPayout(buildPayoutRequest({ url, body, privateKey, keyid }))
  ).status;
}
