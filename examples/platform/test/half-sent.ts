import { connect } from "node:net";
import { signPayout, type TestKey } from "./signer.ts";

const payoutPath = "/api/v1/transaction";

/** A payout of which the platform has the head and the first bytes of the body. */
export interface HalfSent {
  readonly answer: Promise<string>;
  sendRest(): void;
}

export async function sendHalf(url: string, key: TestKey, body: string): Promise<HalfSent> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).setEncoding("utf8");
  const fields = { Host: `${hostname}:${port}`, "Content-Length": String(Buffer.byteLength(body)) };
  const headers = { ...fields, ...signPayout(key, payoutPath, body) };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  socket.write(`POST ${payoutPath} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n${body.slice(0, 20)}`);
  let text = "";
  socket.on("data", (chunk: string) => {
    text += chunk;
  });
  const answer = new Promise<string>((resolve) => {
    socket.on("close", () => resolve(text));
    socket.on("error", () => {});
  });
  // The platform has the head of the request when it has answered a later one.
  await fetch(`${url}/healthz`).then((response) => response.text());
  return { answer, sendRest: () => void socket.write(body.slice(20)) };
}
