// One app in a process of its own: `node server.mjs payout|bare`, told its key by a message, answers with its port.
import { createPublicKey } from "node:crypto";
import { bareApp, payoutApp } from "./apps.mjs";

process.once("message", ({ publicKeyPem, base, signature }) => {
  const sample = { base: Buffer.from(base, "base64"), signature: Buffer.from(signature, "base64") };
  const app =
    process.argv[2] === "payout" ? payoutApp(publicKeyPem) : bareApp(createPublicKey(publicKeyPem), sample);
  const server = app.listen(0, "127.0.0.1", () => process.send({ port: server.address().port }));
});
process.on("disconnect", () => process.exit(0));
