// Signs payout instructions by string concatenation, so that a benchmark measures the receiving side alone.
import { createHash, generateKeyPairSync, randomUUID, sign } from "node:crypto";

export const path = "/api/v1/transaction";
export const keyid = "bench-key";

export function createSigner() {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  let count = 0;
  const next = () => {
    const body = JSON.stringify({
      idempotency_key: `payout-${++count}.funding-${process.pid}.business-7`,
      business_id: "business-7",
      beneficiary: { iban: "DE89370400440532013000", bic: "COBADEFFXXX", name: "Example Trading GmbH" },
      amount: { value: "1250.00", currency: "EUR" },
      reference: "Funding 2026-0042, first instalment",
      note: "x".repeat(100),
    });
    const digest = `sha-256=:${createHash("sha256").update(body).digest("base64")}:`;
    const created = Math.floor(Date.now() / 1000);
    const params =
      `("@method" "@path" "content-type" "content-digest");created=${created};expires=${created + 60}` +
      `;keyid="${keyid}";alg="ed25519";nonce="${randomUUID()}"`;
    const base =
      `"@method": POST\n"@path": ${path}\n"content-type": application/json\n` +
      `"content-digest": ${digest}\n"@signature-params": ${params}`;
    const signature = sign(null, Buffer.from(base), privateKey);
    const headers = {
      "content-type": "application/json",
      "content-digest": digest,
      "signature-input": `sig1=${params}`,
      signature: `sig1=:${signature.toString("base64")}:`,
    };
    return { body, headers, base: Buffer.from(base), signature };
  };
  return { publicKey, publicKeyPem: publicKey.export({ type: "spki", format: "pem" }), next };
}
