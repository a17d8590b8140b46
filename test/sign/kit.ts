// A service that signs its requests, and a platform on Express that signs its answers.
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { request as open, type IncomingMessage, type RequestListener } from "node:http";
import { buffer } from "node:stream/consumers";
import { createContentDigest } from "@countersign/content-digest";
import { guardErrors } from "@countersign/express";
import { importVerificationKey, sign, type RequestMessage } from "@countersign/http-message-signatures";
import { createSigner, signResponse } from "@countersign/http-signature-verify/sign";
import { httpSignatureVerify, memoryNonceStore } from "@countersign/http-signature-verify";
import type { RequestHandler } from "express";
import express4 from "express4";
import { expressVersionsWith, type ExpressFactory } from "@countersign/test-support/runs/express-versions.ts";
import { close, listen as listenTo } from "@countersign/test-support/servers/http-client.ts";

type SignResponseOptions = Parameters<typeof signResponse>[0];

export const versions = expressVersionsWith(express4);
const service = generateKeyPairSync("ed25519");
export const platform = generateKeyPairSync("ed25519");
const key = importVerificationKey("platform-2026", platform.publicKey);
export const keys = (keyid: string) => (keyid === key.keyid ? key : undefined);
export const signer = createSigner(platform.privateKey, "platform-2026");
export const path = "/api/v1/transaction";

const closing: (() => Promise<void>)[] = [];

export async function closeAll(): Promise<void> {
  await Promise.all(closing.splice(0).map((end) => end()));
}

export async function listen(listener: RequestListener): Promise<number> {
  const { server, port } = await listenTo(listener);
  closing.push(() => close(server));
  return port;
}

/** The port of an app that signs what `handler` answers. */
export function serve(
  framework: ExpressFactory,
  handler: RequestHandler,
  options: Partial<SignResponseOptions> = {},
): Promise<number> {
  const app = framework().disable("x-powered-by");
  app.all(path, signResponse({ signer, ...options }), verifier(), handler);
  app.use(guardErrors());
  return listen(app);
}

export function verifier() {
  return httpSignatureVerify({ keys: { service: service.publicKey }, nonces: memoryNonceStore() });
}

export type SentRequest = RequestMessage & { readonly body: string };

export function signedRequest(
  body = '{"amount":1}',
  { privateKey = service.privateKey, method = "POST", fields = [] as readonly string[] } = {},
): SentRequest {
  const rawHeaders = [
    ...fields,
    "Content-Type",
    "application/json",
    "Content-Digest",
    createContentDigest(Buffer.from(body)),
  ];
  const unsigned = { method, target: path, rawHeaders };
  const { signatureInput, signature } = sign(unsigned, { key: privateKey, keyid: "service" });
  return {
    ...unsigned,
    rawHeaders: [...rawHeaders, "Signature-Input", signatureInput, "Signature", signature],
    body,
  };
}

/** The answer to a request as soon as its head is there. */
export async function responseTo(port: number, request: SentRequest): Promise<IncomingMessage> {
  const { method, target, rawHeaders, body } = request;
  const outgoing = open({ host: "127.0.0.1", port, method, path: target, agent: false });
  for (let at = 0; at < rawHeaders.length; at += 2)
    outgoing.setHeader(rawHeaders[at] ?? "", rawHeaders[at + 1] ?? "");
  outgoing.end(body === "" ? undefined : body);
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  return incoming;
}

export async function exchange(port: number, request: SentRequest) {
  const incoming = await responseTo(port, request);
  const body = await buffer(incoming);
  const { statusCode: status = 0, rawHeaders, headers } = incoming;
  return { request, status, rawHeaders, headers, body };
}
