import { once } from "node:events";
import {
  buildPayoutRequest,
  createPayoutInstruction,
  generateKeyPair,
  sendPayout,
} from "@countersign/sandbox";

// Mounts the endpoint, sends one payout twice, and fails the process unless it is answered 200 and then 409.
export async function payOnce({ express, memoryNonceStore, memoryIdempotencyStore, payoutEndpoint }) {
  const { keyid, publicKeyPem, privateKeyPem } = generateKeyPair();
  const app = express();
  const endpoint = payoutEndpoint({
    keys: { [keyid]: publicKeyPem },
    allowIps: ["127.0.0.1"],
    nonces: memoryNonceStore(),
    store: memoryIdempotencyStore(),
  });
  app.post("/pay", endpoint, (req, res) => res.json({ paid: req.payout.idempotencyKey }));
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${server.address().port}/pay`;
  const body = createPayoutInstruction();
  const statuses = [];
  for (let attempt = 0; attempt < 2; attempt++) {
    const { status } = await sendPayout(buildPayoutRequest({ url, body, privateKey: privateKeyPem, keyid }));
    statuses.push(status);
  }
  server.close();
  if (statuses.join() !== "200,409") throw new Error(`answered ${statuses.join()}`);
}
