import { once } from "node:events";
import { request, type Agent, type IncomingHttpHeaders } from "node:http";
import { text } from "node:stream/consumers";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** What JSON says; empty where it is none. */
  readonly body: Record<string, unknown>;
}

export interface Sending {
  readonly method?: string;
  /** An empty one is not sent. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer | undefined;
  readonly agent?: Agent;
}

/** Sends a request to the target of a URL as it is written. */
export async function send(
  to: string,
  { method = "GET", headers = {}, body, agent }: Sending = {},
): Promise<Answer> {
  const { hostname, port } = new URL(to);
  const path = to.slice(to.indexOf("/", "http://".length));
  const fields = Object.entries(headers).filter(([, value]) => value !== "");
  const sent = request({ hostname, port, path, method, agent, headers: Object.fromEntries(fields) });
  sent.end(body);
  const [answer] = await once(sent, "response");
  const received = await text(answer);
  return {
    status: answer.statusCode,
    headers: answer.headers,
    text: received,
    body: received.startsWith("{") ? (JSON.parse(received) as Record<string, unknown>) : {},
  };
}

/** A page on loopback, and the token of its start. */
export interface Page {
  readonly url: string;
  readonly token: string;
}

/** As the page asks: with its token, from its own origin. Headers of `others` replace these; an empty one is not sent. */
export function asPage(
  { url, token }: Page,
  path: string,
  { method = "GET", headers: others, body }: Sending = {},
): Promise<Answer> {
  const { host, origin } = new URL(url);
  const headers = {
    Host: host,
    Origin: method === "GET" ? "" : origin,
    "Sec-Fetch-Site": "same-origin",
    "X-Page-Token": token,
    ...(body === undefined ? {} : { "Content-Type": "application/json" }),
    ...others,
  };
  return send(url + path, { method, headers, body });
}

/** The first events of a page's stream for which `isLast` holds at the end, as they came. */
export async function streamOf(
  { url, token }: Page,
  path: string,
  isLast: (text: string) => boolean,
): Promise<string> {
  const { hostname, port } = new URL(url);
  const sent = request({ hostname, port, path, headers: { "X-Page-Token": token } });
  sent.end();
  const [answer] = await once(sent, "response");
  let received = "";
  for await (const chunk of answer) {
    received += String(chunk);
    if (isLast(received)) break;
  }
  sent.destroy();
  return received;
}
