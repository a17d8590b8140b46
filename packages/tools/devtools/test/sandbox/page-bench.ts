import type { Server } from "node:http";
import { text } from "node:stream/consumers";
import { listen } from "@countersign/test-support/servers/http-client.ts";
import { asPage, streamOf, type Answer } from "@countersign/test-support/servers/page-client.ts";
import { generateKeyPair } from "../../src/sandbox/key-pair.ts";
import type { SandboxOptions } from "../../src/sandbox/service/options.ts";
import { startSandbox, type Sandbox } from "../../src/sandbox/service/sandbox.ts";

/** TEST CREDENTIALS, which nothing else in an answer looks like. */
export const seeded = {
  apiKey: "seeded-api-key-7f41",
  username: "seeded-user",
  password: 'seeded "pass+word" 92bc',
  secret: "seeded-secret/5d08",
};

const pair = generateKeyPair({ keyid: "page-key" });

/** Everything that no answer for the page may hold, in each form. */
export const secrets: readonly string[] = [
  ...pair.privateKeyPem.split("\n").filter((line) => line !== "" && !line.startsWith("-----")),
  ...[seeded.apiKey, seeded.password, seeded.secret, `${seeded.username}:${seeded.password}`].flatMap(
    (secret) => [
      secret,
      JSON.stringify(secret).slice(1, -1),
      ...echoesOf(secret).map((echo) => echo.replace(/=+$/, "")),
    ],
  ),
];

/** Some of what a receiver can make of a secret; all of it is in the tests of the inspector. */
function echoesOf(secret: string): readonly string[] {
  const base64 = Buffer.from(secret).toString("base64");
  return [
    base64,
    Buffer.from(base64).toString("base64"),
    Buffer.from(secret).toString("hex").toUpperCase(),
    secret.replaceAll(/./g, (unit) => `\\u00${unit.charCodeAt(0).toString(16)}`),
    encodeURIComponent(secret),
  ];
}

/** A sandbox with a page, and a platform that answers with everything that it was sent. */
export class PageBench {
  /** What the platform answers; undefined is no answer at all. */
  status: number | undefined = 200;
  received = 0;
  /** What stands in an answer before what the platform sends back. */
  before = "";
  hold: Promise<void> | undefined;
  platform = "";
  #platform: Server | undefined;
  #sandbox: Sandbox | undefined;

  get sandbox(): Sandbox {
    if (this.#sandbox === undefined) throw new Error("the sandbox was not started");
    return this.#sandbox;
  }

  get token(): string {
    return /#token=(.+)$/.exec(this.sandbox.pageUrl ?? "")?.[1] ?? "";
  }

  async open(options: Partial<SandboxOptions> = {}): Promise<void> {
    this.received = 0;
    this.hold = undefined;
    this.before = "";
    const { server, port } = await listen(async (req, res) => {
      const body = await text(req);
      this.received += 1;
      await this.hold;
      if (this.status === undefined) req.socket.destroy();
      else {
        res.writeHead(this.status, { "X-Echo": req.headers.authorization ?? "none", "X-Key": seeded.apiKey });
        const known = [seeded.apiKey, seeded.password, seeded.secret];
        const echoes = this.before === "" ? known.flatMap(echoesOf) : [];
        const headers = this.before === "" ? req.headers : {};
        res.end(this.before + JSON.stringify({ known, headers, echoes, length: body.length }));
      }
    });
    this.#platform = server;
    this.platform = `http://127.0.0.1:${port}`;
    const page = { payoutUrl: `${this.platform}/pay`, privateKey: pair.privateKeyPem, keyid: pair.keyid };
    this.#sandbox = await startSandbox({ apiKey: seeded.apiKey, allowHttp: "loopback", page, ...options });
  }

  register(path = "/hooks"): void {
    const { username, password, secret } = seeded;
    const url = `${this.platform}${path}`;
    this.sandbox.deliveries.addEndpoint({ url, username, password, secret, allowHttp: "loopback" });
  }

  async close(): Promise<void> {
    await this.sandbox.close();
    await new Promise((resolve) => this.#platform?.close(resolve));
  }

  /** As the page asks, see {@link asPage}. */
  ask(
    method: string,
    path: string,
    { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<Answer> {
    const { url } = this.sandbox;
    const sent = body === undefined ? undefined : JSON.stringify(body);
    return asPage({ url, token: this.token }, path, { method, headers, body: sent });
  }

  /** The first events of the stream for which `isLast` holds at the end, as they came. */
  stream(isLast: (text: string) => boolean): Promise<string> {
    return streamOf({ url: this.sandbox.url, token: this.token }, "/sandbox/stream", isLast);
  }
}
