// Makes each refusal and each notice happen in the built packages, for the page of codes: what stands there as an example is what they say.
import { createHash, generateKeyPairSync } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { GuardError, isGuardError } from "@countersign/core";
import { verdicts } from "@countersign/core/internal";
import { guardErrors } from "@countersign/express";
import { sign } from "@countersign/http-message-signatures";
import { httpSignatureVerifier, memoryNonceStore } from "@countersign/http-signature-verify";
import express from "express";

export const { privateKey, publicKey } = generateKeyPairSync("ed25519");
export const keyid = "service-2026";
export const body = JSON.stringify({
  idempotency_key: "payout-1.funding-1.business-1",
  business_id: "biz_1",
  beneficiary: { iban: "DE89370400440532013000", bic: "COBADEFFXXX", name: "Example GmbH" },
  amount: { value: "10.10", currency: "EUR" },
});
const path = "/api/v1/transaction";

/** A request as checks know it. */
export function received({ method = "POST", target = path, rawHeaders, bytes = Buffer.from(body) }) {
  return {
    method,
    target,
    rawHeaders,
    scheme: "https",
    clientAddress: "192.0.2.10",
    body: () => Promise.resolve(bytes),
  };
}

export const digestOf = (text, algorithm = "sha256") =>
  `${algorithm.replace("sha", "sha-")}=:${createHash(algorithm).update(text).digest("base64")}:`;

export const plainHeaders = () => [
  "Host",
  "platform.example",
  "Content-Type",
  "application/json",
  "Content-Digest",
  digestOf(body),
];

/** A signed payout; `signature` goes to `sign()`, `change` to what has been signed. */
export function signed(signature = {}, change = (message) => message) {
  const message = { method: "POST", target: path, rawHeaders: plainHeaders() };
  const fields = sign(message, { key: privateKey, keyid, ...signature });
  message.rawHeaders.push("Signature-Input", fields.signatureInput, "Signature", fields.signature);
  return received(change(message));
}

/** A payout with these fields of a signature, which nobody has signed. */
export function unsigned(
  signatureInput,
  { headers = [], signature = `sig1=:${"A".repeat(86)}==:`, ...rest } = {},
) {
  const rawHeaders = [
    ...plainHeaders(),
    ...headers,
    "Signature-Input",
    signatureInput,
    "Signature",
    signature,
  ];
  return received({ rawHeaders, ...rest });
}

export const input = ({
  components = '"@method" "@path" "content-type" "content-digest"',
  parameters = {},
} = {}) => {
  const now = Math.floor(Date.now() / 1000);
  const all = {
    created: now,
    expires: now + 60,
    keyid: `"${keyid}"`,
    alg: '"ed25519"',
    nonce: '"1f3c"',
    ...parameters,
  };
  const written = Object.entries(all).filter(([, value]) => value !== undefined);
  return `sig1=(${components})${written.map(([name, value]) => `;${name}=${value}`).join("")}`;
};

/** What `httpSignatureVerify` says of a request. */
export function verified(request, policy = {}) {
  return async () => {
    const check = httpSignatureVerifier({
      keys: { [keyid]: publicKey },
      nonces: memoryNonceStore(),
      ...policy,
    });
    const requests = [request].flat();
    return refusalOf("httpSignatureVerify", async () => {
      for (const one of requests) await check(typeof one === "function" ? one() : one);
    });
  };
}

/** The line of what `work` throws, as an adapter writes it where nobody listens. */
export async function refusalOf(name, work, method = "POST") {
  try {
    await work();
  } catch (error) {
    if (!isGuardError(error))
      return { code: error.code, text: `${error.name} ${error.code}: ${error.message}` };
    const [text] = await linesOf(() => verdicts.writeUnreported({ name, req: {} }, method, error));
    return { code: error.code, status: error.status, text };
  }
  throw new Error(`${name} refused nothing`);
}

// One at a time: the lines are those of the process.
async function linesOf(work) {
  const lines = [];
  const written = console.error;
  const before = process.env["COUNTERSIGN_STDERR"];
  process.env["COUNTERSIGN_STDERR"] = "on";
  console.error = (line) => lines.push(line);
  try {
    await work(lines);
  } finally {
    console.error = written;
    if (before === undefined) delete process.env["COUNTERSIGN_STDERR"];
    else process.env["COUNTERSIGN_STDERR"] = before;
  }
  return lines;
}

/** What an app behind Express says of the last of `requests`; `mount(app)` puts what is tried there. Nothing where it is not `refused`. */
export function answered(mount, requests, { twice, refused = true } = {}) {
  return async () => {
    const app = express();
    mount(app);
    app.use(guardErrors());
    // An error of the app's own is not what is shown.
    app.use((_error, _req, res, _next) => void res.status(500).end());
    const server = app.listen(0, "127.0.0.1");
    await once(server, "listening");
    const statuses = [];
    let text;
    await linesOf(async (lines) => {
      const { port } = server.address();
      // A function makes its request now: a signature lasts a minute.
      for (const one of [requests].flat())
        statuses.push(await send(port, typeof one === "function" ? one() : one));
      // Two at once; the refusal is what is shown.
      if (twice !== undefined)
        statuses.push(Math.max(...(await Promise.all([send(port, twice), send(port, twice)]))));
      // A refusal is told after its answer, on a busy machine some time after.
      const most = refused ? 250 : 0;
      for (let waits = 0; waits < most && text === undefined; waits++) {
        await new Promise((resolve) => setTimeout(resolve, 20));
        text = lines.findLast((line) => line.startsWith("countersign: "));
      }
    });
    server.closeAllConnections();
    server.close();
    if (!refused) return undefined;
    if (text === undefined) throw new Error(`nothing was refused: ${statuses.join(", ")}`);
    return { code: / with \d{3} ([a-z0-9-]+)/.exec(text)?.[1], status: statuses.at(-1), text };
  };
}

export function post(overrides = {}) {
  const { headers = {}, ...rest } = overrides;
  return {
    method: "POST",
    path: "/",
    headers: { "Content-Type": "application/json", ...headers },
    body,
    ...rest,
  };
}

function send(port, { body: text, chunks, ...options }) {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: "127.0.0.1", port, ...options }, (response) => {
      let answer = JSON.stringify(response.rawHeaders);
      response.setEncoding("utf8").on("data", (piece) => (answer += piece));
      response.on("end", () => {
        // What a code means is for the log: a caller must not learn it from an answer.
        if (/codes\.html|"docs"/.test(answer)) reject(new Error(`the answer leads to the page: ${answer}`));
        else resolve(response.statusCode);
      });
    });
    request.on("error", (error) => (error.code === "ECONNRESET" ? resolve(undefined) : reject(error)));
    for (const chunk of chunks ?? []) request.write(chunk);
    request.end(text);
  });
}

/** The notice with this code that comes while, or soon after, `work` is done. */
export function noticed(code, work) {
  return async () => {
    let hear;
    const heard = new Promise((resolve) => void (hear = resolve));
    const listen = (notice) => notice.code === code && hear(notice);
    subscribe("countersign:notice", listen);
    let timer;
    const late = new Promise((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`no notice ${code}`)), 10_000);
    });
    try {
      const done = Promise.resolve(work());
      const { guard, message } = await Promise.race([heard, late]);
      await done;
      return { code, text: JSON.stringify({ guard, code, message }, undefined, 2) };
    } finally {
      clearTimeout(timer);
      unsubscribe("countersign:notice", listen);
    }
  };
}

export { GuardError };
