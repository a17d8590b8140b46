import {
  buildPayoutRequest,
  createPayoutInstruction,
  generateKeyPair,
  sendPayout,
  startSandbox,
} from "@countersign/devtools/sandbox";

const { keyid, publicKeyPem, privateKeyPem } = generateKeyPair();

/** What the platform under test has to know. */
export const keys = { [keyid]: publicKeyPem };

/**
 * Sends one sample payout as the lending service would, and returns the
 * platform's status.
 */
export async function payOnce(url: string): Promise<number> {
  const body = createPayoutInstruction({
    idempotencyKey: "payout-1.funding-1.business-1",
  });
  const request = buildPayoutRequest({
    url,
    body,
    privateKey: privateKeyPem,
    keyid,
  });
  const { status } = await sendPayout(request, { timeoutMs: 5000 });
  return status;
}

/**
 * Changes a buyer at the service, and returns how often its webhook was sent
 * until the platform took it.
 */
export async function changeBuyer(
  webhookUrl: string,
): Promise<number | undefined> {
  const sandbox = await startSandbox({
    apiKey: "test-api-key",
    allowHttp: true,
    speed: 1440,
  });
  const credentials = {
    username: "service",
    password: "test-password",
    secret: "test-secret",
  };
  sandbox.deliveries.addEndpoint({
    url: webhookUrl,
    ...credentials,
    allowHttp: true,
  });
  sandbox.changeBuyerStatus("buyer-1", "ACTIVE");
  await sandbox.deliveries.idle();
  const [delivery] = sandbox.deliveries.list({ state: "delivered" });
  await sandbox.close();
  return delivery?.attempts.length;
}
