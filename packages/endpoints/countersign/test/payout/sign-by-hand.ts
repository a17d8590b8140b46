import { createHash, generateKeyPairSync, randomUUID, sign, type KeyObject } from "node:crypto";

/** A signer written from the spec alone: it shares no code with the packages that it tests. */
export interface HandSigner {
  readonly keyid: string;
  readonly publicKeyPem: string;
  readonly privateKey: KeyObject;
}

export interface HandSigned {
  readonly "Content-Type": string;
  readonly "Content-Digest": string;
  readonly "Signature-Input": string;
  readonly Signature: string;
}

export function createHandSigner(keyid: string): HandSigner {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  return { keyid, privateKey, publicKeyPem: publicKey.export({ type: "spki", format: "pem" }).toString() };
}

/** The header fields of one signed POST. `now` is in unix seconds. */
export function signByHand(
  signer: HandSigner,
  request: {
    readonly path: string;
    /** Default POST. */
    readonly method?: string;
    readonly body: string | Buffer;
    readonly now?: number;
    readonly nonce?: string;
    readonly keyid?: string;
    readonly contentType?: string;
  },
): HandSigned {
  const created = request.now ?? Math.floor(Date.now() / 1000);
  const contentType = request.contentType ?? "application/json";
  const digest = `sha-256=:${createHash("sha256").update(request.body).digest("base64")}:`;
  const parameters =
    `("@method" "@path" "content-type" "content-digest");created=${created};expires=${created + 60}` +
    `;nonce="${request.nonce ?? randomUUID()}";keyid="${request.keyid ?? signer.keyid}";alg="ed25519"`;
  const base =
    `"@method": ${request.method ?? "POST"}\n"@path": ${request.path}\n"content-type": ${contentType}\n` +
    `"content-digest": ${digest}\n"@signature-params": ${parameters}`;
  return {
    "Content-Type": contentType,
    "Content-Digest": digest,
    "Signature-Input": `sig1=${parameters}`,
    Signature: `sig1=:${sign(null, Buffer.from(base), signer.privateKey).toString("base64")}:`,
  };
}
