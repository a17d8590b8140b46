import {
  request as httpRequest,
  type Agent,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { isIP } from "node:net";
import { parsePayoutUrl, type PayoutUrl } from "./payout-url.ts";
import { PayoutSendError, sendErrorOf } from "./send-error.ts";

/** Host and Content-Length are added. */
export interface OutgoingRequest {
  readonly method: string;
  readonly url: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly bodyBytes: Buffer;
}

export interface SendOptions {
  /** From the first packet to the last byte of the answer. Default 10 000. */
  readonly timeoutMs?: number | undefined;
  /** Local address to send from, for example `127.0.0.2` to come from an address that is not allowed. */
  readonly localAddress?: string | undefined;
  /** Issuer certificates in PEM form that an https server is checked against. Default those of Node. */
  readonly ca?: string | Buffer | undefined;
  /** Default one connection for each request. */
  readonly agent?: Agent | undefined;
  /** Bytes of the answer's body that are kept. Default 65 536. */
  readonly bodyLimitBytes?: number | undefined;
}

export interface ExchangeOptions extends SendOptions {
  readonly signal?: AbortSignal | undefined;
  /** Lose the connection when the answer begins: the receiver has answered, and the sender never learns it. Default false. */
  readonly dropAnswer?: boolean | undefined;
}

type PayoutAnswer = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Decoded as UTF-8; cut at `bodyLimitBytes`. */
  readonly body: string;
  readonly bodyTruncated: boolean;
  readonly durationMs: number;
};

export function sendPayout(request: OutgoingRequest, options: SendOptions = {}): Promise<PayoutAnswer> {
  return sendRequest(request, options);
}

/** Sends a request as built: follows no redirect, always verifies certificates. Rejects with a PayoutSendError without an answer. */
export function sendRequest(request: OutgoingRequest, options: ExchangeOptions = {}): Promise<PayoutAnswer> {
  const { timeoutMs = 10_000, bodyLimitBytes = 65_536, dropAnswer = false } = options;
  if (!(timeoutMs > 0 && timeoutMs <= 2_147_483_647)) {
    throw new TypeError(`option timeoutMs must be milliseconds above 0, got ${timeoutMs}`);
  }
  const url = parsePayoutUrl(request.url);
  const origin = `${url.scheme}://${url.authority}`;
  const startedAt = performance.now();
  return new Promise((resolve, reject) => {
    const send = url.scheme === "https" ? httpsRequest : httpRequest;
    const outgoing = send(connection(request, url, options));
    const fail = (error: unknown): void => {
      clearTimeout(timer);
      reject(sendErrorOf(error, origin));
    };
    const timer = setTimeout(() => {
      fail(new PayoutSendError("timed-out", `${origin} gave no complete answer within ${timeoutMs} ms`));
      outgoing.destroy();
    }, timeoutMs);
    outgoing.on("error", fail);
    outgoing.on("response", (incoming) => {
      if (dropAnswer) {
        fail(new PayoutSendError("connection-lost", `the answer of ${origin} was dropped on purpose`));
        outgoing.destroy();
        return;
      }
      void readCapped(incoming, bodyLimitBytes).then((read) => {
        clearTimeout(timer);
        const durationMs = performance.now() - startedAt;
        return resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, ...read, durationMs });
      }, fail);
    });
    outgoing.end(request.bodyBytes);
  });
}

function connection(
  request: OutgoingRequest,
  url: PayoutUrl,
  { agent, ca, localAddress, signal }: ExchangeOptions,
): RequestOptions {
  const fields = Object.entries(request.headers);
  const host = fields.some(([name]) => name.toLowerCase() === "host") ? [] : ["Host", url.authority];
  return {
    method: request.method,
    host: url.hostname,
    port: url.port,
    path: request.target,
    // A flat list is written as it is: Node neither merges nor renames nor adds fields.
    headers: [...host, ...fields.flat(), "Content-Length", String(request.bodyBytes.length)],
    agent: agent ?? false,
    // Spelt out, because NODE_TLS_REJECT_UNAUTHORIZED=0 would turn the default off.
    rejectUnauthorized: true,
    ...(ca === undefined ? {} : { ca }),
    ...(signal === undefined ? {} : { signal }),
    ...(localAddress === undefined ? {} : { localAddress, family: isIP(localAddress) }),
  };
}

async function readCapped(
  incoming: IncomingMessage,
  limitBytes: number,
): Promise<Pick<PayoutAnswer, "body" | "bodyTruncated">> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of incoming) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > limitBytes) break;
  }
  const body = Buffer.concat(chunks).subarray(0, limitBytes).toString("utf8");
  return { body, bodyTruncated: length > limitBytes };
}
