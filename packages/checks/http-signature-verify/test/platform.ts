import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { RequestListener, Server } from "node:http";
import { guardChannelName, type GuardEvent } from "@countersign/core";
import { guardErrors, type GuardRequest } from "@countersign/express";
import {
  httpSignatureVerify,
  memoryNonceStore,
  type HttpSignatureVerifyOptions,
} from "@countersign/http-signature-verify";
import express5 from "express";
import express4 from "express4";
import { expressVersionsWith } from "@countersign/test-support/runs/express-versions.ts";
import { samplePath } from "@countersign/test-support/signers/independent-signer.ts";
import {
  close,
  listen,
  send,
  type WireAnswer,
  type WireRequest,
} from "@countersign/test-support/servers/http-client.ts";
import { servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";

export const expressVersions = expressVersionsWith(express4);

/** A listening app behind httpSignatureVerify that records what reached the handler and what the guards said. */
export interface Platform {
  readonly port: number;
  readonly reached: Express.Request[];
  readonly codes: (string | undefined)[];
  send(wire: WireRequest): Promise<WireAnswer>;
  close(): Promise<void>;
}

export const defaults = (): HttpSignatureVerifyOptions => ({
  keys: { "test-key": servicePublicPem },
  nonces: memoryNonceStore(),
});

export async function startPlatform(
  express: typeof express5 = express5,
  options: Partial<HttpSignatureVerifyOptions> = {},
  prepare: (app: express5.Express) => void = () => undefined,
): Promise<Platform> {
  const reached: Express.Request[] = [];
  const app = express();
  prepare(app);
  app.all(samplePath, httpSignatureVerify({ ...defaults(), ...options }), (req, res) => {
    reached.push(req);
    res.json({ ok: true });
  });
  app.use(guardErrors());
  return observe(app, reached);
}

export async function observe(app: RequestListener, reached: Express.Request[] = []): Promise<Platform> {
  const codes: (string | undefined)[] = [];
  const { server, port } = await listen(app);
  const onEvent = (message: unknown): void => {
    const { req, outcome, code } = message as GuardEvent<GuardRequest>;
    if (outcome !== "pass" && belongsTo(req.socket.localPort, server)) codes.push(code);
  };
  subscribe(guardChannelName, onEvent);
  return {
    port,
    reached,
    codes,
    send: (wire) => send(port, wire),
    close: async () => {
      unsubscribe(guardChannelName, onEvent);
      await close(server);
    },
  };
}

function belongsTo(port: number | undefined, server: Server): boolean {
  const address = server.address();
  return typeof address === "object" && address?.port === port;
}
