import { createHmac } from "node:crypto";
import type { proxyTrust } from "@countersign/express/internal";
import { describe, expect, test } from "@jest/globals";
import express from "express";
import { close, listen, send } from "@countersign/test-support/servers/http-client.ts";
import {
  explainAddress,
  explainBasicAuth,
  explainClaim,
  explainHmac,
  explainPayload,
} from "../../dist/explain/index.js";
import { otherMistakes } from "./other-mistakes.ts";
import { explainedAs } from "./signed-with-mistake.ts";

type TrustFunction = Parameters<typeof proxyTrust.trustsEverybody>[0];

const compiled = (setting: unknown): TrustFunction =>
  express().set("trust proxy", setting).get("trust proxy fn");

describe("explanations of the other checks", () => {
  const rows = explainedAs("other-mistakes.txt");

  test("are all told", () => {
    expect(rows.map(({ mistake }) => mistake)).toEqual(Object.keys(otherMistakes));
  });

  test.each(rows)("$mistake", async ({ mistake, what, says }) => {
    const explained = await otherMistakes[mistake]?.();
    expect(explained).toMatchObject({ what, sentence: says });
    // Nothing is refused, or nobody can tell.
    const isOpen = ["verifies", "claim-free", "body-not-known"].includes(what);
    expect(isOpen).toBe(explained?.code === undefined);
  });

  test("no explanation of an HMAC shows a secret, an HMAC, or what was received", async () => {
    const secret = "a secret of nobody at all";
    const body = Buffer.from("{}");
    const macs = ["sha1", "sha256", "sha512"].map((algorithm) =>
      createHmac(algorithm, secret).update(body).digest(),
    );
    for (const sent of [...macs, Buffer.alloc(32, 7)]) {
      for (const encoding of ["base64", "hex"] as const) {
        const rawHeaders = ["X-Payload-Signature", sent.toString(encoding)];
        const shown = JSON.stringify(await explainHmac({ rawHeaders }, body, { secrets: [secret] }));
        expect(shown).not.toContain(secret);
        for (const bytes of [...macs, sent]) {
          expect(shown).not.toContain(bytes.toString("base64").slice(0, 20));
          expect(shown).not.toContain(bytes.toString("hex").slice(0, 20));
        }
      }
    }
  });

  test("no explanation of basic authentication shows a username or a password", async () => {
    const credentials = [{ username: "the-service", password: "its-password" }];
    for (const text of [
      "the-service:guessed-one",
      "guessed-one:its-password",
      "guessed-one:guessed-two",
      "its-password:the-service",
    ]) {
      const rawHeaders = ["Authorization", `Basic ${Buffer.from(text).toString("base64")}`];
      const shown = JSON.stringify(await explainBasicAuth({ rawHeaders }, credentials));
      expect(shown).not.toMatch(/the-service|its-password|guessed/);
    }
  });

  const proxied = {
    peer: "10.0.0.1",
    allow: ["198.51.100.7"],
    rawHeaders: ["X-Forwarded-For", "198.51.100.7, 192.0.2.1"],
  };

  test.each<[string, number | readonly string[] | TrustFunction, string]>([
    ["a count", 1, "since trust proxy counts 1"],
    ["a list", ["10.0.0.1"], "since trust proxy does not trust it"],
    ["a list of names", ["loopback", "uniquelocal"], "since trust proxy does not trust it"],
    ["a function", (address) => address === "10.0.0.1", "since trust proxy does not trust it"],
    ["a count that Express has compiled", compiled(1), "since trust proxy does not trust it"],
    ["names that Express has compiled", compiled("uniquelocal"), "since trust proxy does not trust it"],
  ])("names every hop, and which one decided, by %s", (_name, trustProxy, why) => {
    expect(explainAddress({ ...proxied, trustProxy }).details).toEqual([
      'the socket: "10.0.0.1", trusted as a proxy',
      `entry 1 of X-Forwarded-For from its end: "192.0.2.1", taken, ${why}`,
      'entry 2 of X-Forwarded-For from its end: "198.51.100.7"',
    ]);
  });

  test.each([1, 2, 3, "loopback", "loopback, 192.0.2.0/24", false])(
    "takes the address that Express takes, by trust proxy %p",
    async (setting) => {
      const app = express().set("trust proxy", setting);
      const seen: string[] = [];
      app.use((req, res) => {
        const { rawHeaders, socket } = req;
        const { details } = explainAddress({
          peer: socket.remoteAddress,
          trustProxy: app.get("trust proxy fn"),
          allow: ["198.51.100.7"],
          rawHeaders,
        });
        seen.push(`"${req.ip}", taken`, details.find((detail) => detail.includes(", taken")) ?? "");
        res.end();
      });
      const { server, port } = await listen(app);
      const headers = proxied.rawHeaders;
      await send(port, { method: "GET", path: "/", headers, body: Buffer.alloc(0) });
      await close(server);
      expect(seen[1]).toContain(seen[0]);
    },
  );

  test("passes no address of a peer on as Express does", () => {
    const asked: unknown[] = [];
    const trustProxy: TrustFunction = (address) => asked.push(address) === 0;
    explainAddress({ allow: ["198.51.100.7"], peer: undefined, rawHeaders: [], trustProxy });
    expect(asked).toContain(undefined);
    expect(asked).not.toContain("");
  });

  test("says that the proxy named no client", () => {
    const explained = explainAddress({
      peer: "10.0.0.1",
      trustProxy: ["10.0.0.1"],
      allow: ["10.0.0.1"],
      rawHeaders: [],
    });
    expect(explained.what).toBe("address-is-proxy");
  });

  test("does not call a payment made by an attempt what an operator has declared", () => {
    const decision = {
      outcome: "done",
      fence: 3,
      at: Date.UTC(2026, 0, 1),
      by: "anna",
      reason: "why",
    } as const;
    const record = { state: "done", token: "t", fence: 3, fingerprint: "f", decision } as const;
    expect(explainClaim({ key: "k", record }).sentence).toBe(
      'Do not send it again: an operator has declared the payment of "k" as made by "anna", at 2026-01-01T00:00:00.000Z.',
    );
    const earlier = { ...record, fence: 4 };
    expect(explainClaim({ key: "k", record: earlier }).sentence).toMatch(/has been made by the attempt/);
  });

  test("names every fault of a payload, the first one first", () => {
    const faults = ["/a", "/b", "/c"].map((pointer) => ({
      pointer,
      code: "required",
      detail: "is required",
    }));
    const { sentence, details } = explainPayload(Buffer.from("{}"), faults);
    expect([sentence, ...details]).toEqual(
      ['"/a"', '"/b"', '"/c"'].map((name) => `Send the member ${name}: it is required.`),
    );
  });
});
