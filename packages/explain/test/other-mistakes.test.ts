import { createHmac } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import {
  explainAddress,
  explainBasicAuth,
  explainClaim,
  explainHmac,
  explainPayload,
} from "../dist/index.js";
import { otherMistakes } from "./other-mistakes.ts";

describe("explanations of the other checks", () => {
  test.each(otherMistakes)("$mistake", ({ explain, what, says }) => {
    const explained = explain();
    expect(explained).toMatchObject({ what, sentence: says });
    expect(explained.what === "verifies" || explained.what === "claim-free").toBe(
      explained.code === undefined,
    );
  });

  test("no explanation of an HMAC shows a secret, an HMAC, or what was received", () => {
    const secret = "a secret of nobody at all";
    const body = Buffer.from("{}");
    const macs = ["sha1", "sha256", "sha512"].map((algorithm) =>
      createHmac(algorithm, secret).update(body).digest(),
    );
    for (const sent of [...macs, Buffer.alloc(32, 7)]) {
      for (const encoding of ["base64", "hex"] as const) {
        const rawHeaders = ["X-Payload-Signature", sent.toString(encoding)];
        const shown = JSON.stringify(explainHmac({ rawHeaders }, body, { secrets: [secret] }));
        expect(shown).not.toContain(secret);
        for (const bytes of [...macs, sent]) {
          expect(shown).not.toContain(bytes.toString("base64").slice(0, 20));
          expect(shown).not.toContain(bytes.toString("hex").slice(0, 20));
        }
      }
    }
  });

  test("no explanation of basic authentication shows a username or a password", () => {
    const credentials = [{ username: "the-service", password: "its-password" }];
    for (const text of [
      "the-service:guessed-one",
      "guessed-one:its-password",
      "guessed-one:guessed-two",
      "its-password:the-service",
    ]) {
      const rawHeaders = ["Authorization", `Basic ${Buffer.from(text).toString("base64")}`];
      const shown = JSON.stringify(explainBasicAuth({ rawHeaders }, credentials));
      expect(shown).not.toMatch(/the-service|its-password|guessed/);
    }
  });

  test("names every hop, and which one was taken", () => {
    const { details } = explainAddress({
      peer: "10.0.0.1",
      trustProxy: 1,
      allow: ["198.51.100.7"],
      rawHeaders: ["X-Forwarded-For", "198.51.100.7, 192.0.2.1"],
    });
    expect(details).toEqual([
      'the socket: "10.0.0.1"',
      'entry 1 of X-Forwarded-For from its end: "192.0.2.1", taken',
      'entry 2 of X-Forwarded-For from its end: "198.51.100.7"',
    ]);
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

  test("says when a payload that comes again is another one", () => {
    const record = { state: "done", token: "t", fence: 1, fingerprint: "f" } as const;
    expect(explainClaim({ key: "k", record, fingerprint: "g" }).details).toHaveLength(1);
    expect(explainClaim({ key: "k", record, fingerprint: "f" }).details).toEqual([]);
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
