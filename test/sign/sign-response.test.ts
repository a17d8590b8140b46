import { generateKeyPairSync } from "node:crypto";
import { createSigner, responseSigner, signResponse } from "@countersign/http-signature-verify/sign";
import { verifyReceipt } from "countersign/client";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { RequestHandler } from "express";
import { closeAll, exchange, keys, platform, serve, signedRequest, versions } from "./kit.ts";
import { hearNotices } from "../../packages/checks/http-signature-verify/test/live-keys-bench.ts";

type SignResponseOptions = Parameters<typeof signResponse>[0];

let notices: ReturnType<typeof hearNotices>;
beforeEach(() => {
  notices = hearNotices();
});
afterEach(async () => {
  notices.stop();
  await closeAll();
});

describe.each(versions)("signResponse on %s", (_name, framework) => {
  test.each<[string, RequestHandler, number, string]>([
    ["json", (_req, res) => void res.json({ status: "acknowledged" }), 200, '{"status":"acknowledged"}'],
    ["send", (_req, res) => void res.status(201).send("made"), 201, "made"],
    ["an empty end", (_req, res) => void res.status(204).end(), 204, ""],
    [
      "writes",
      (_req, res) => void (res.write("a"), res.write(Buffer.from("b")), res.end("Yw==", "base64")),
      200,
      "abc",
    ],
    [
      "writeHead with fields",
      (_req, res) => void res.writeHead(202, { "Content-Type": "text/plain" }).end("x"),
      202,
      "x",
    ],
    [
      "writeHead with a reason",
      (_req, res) => void res.writeHead(202, "Taken", { "X-A": ["1", "2"] }).end("x"),
      202,
      "x",
    ],
    [
      "writeHead with a list",
      (_req, res) => void res.writeHead(202, ["X-A", "1", "X-A", "2"] as never).end("x"),
      202,
      "x",
    ],
    [
      "a digest of its own",
      (_req, res) => void res.set("Content-Digest", "sha-256=:AAAA:").send("x"),
      200,
      "x",
    ],
    [
      "an error",
      () => {
        throw Object.assign(new Error("no"), { status: 409 });
      },
      409,
      "",
    ],
  ])("makes a receipt of %s", async (_kind, handler, status, body) => {
    const port = await serve(framework, handler);
    const got = await exchange(port, signedRequest());
    expect([got.status, verifyReceipt(got, { keys })]).toEqual([
      status,
      expect.objectContaining({ status, keyid: "platform-2026", label: "receipt" }),
    ]);
    if (body !== "") expect(String(got.body)).toBe(body);
  });

  test("gives each of several answers the receipt of its own request alone", async () => {
    const port = await serve(framework, (_req, res) => void res.json({ status: "acknowledged" }));
    const all = await Promise.all(Array.from({ length: 4 }, () => exchange(port, signedRequest())));
    for (const { request } of all) {
      for (const got of all) {
        const check = () => verifyReceipt({ ...got, request }, { keys });
        if (request === got.request) expect(check()).toMatchObject({ status: 200 });
        else expect(check).toThrow(expect.objectContaining({ code: "signature-mismatch" }));
      }
    }
  });

  test("signs nothing for a stranger", async () => {
    const port = await serve(framework, (_req, res) => void res.json({}));
    const stranger = signedRequest("{}", { privateKey: platform.privateKey });
    const { status, headers } = await exchange(port, stranger);
    expect([status, headers["signature"], headers["signature-input"], headers["content-digest"]]).toEqual(
      [401].concat([undefined, undefined, undefined] as never),
    );
  });

  test("signs the answer of an error handler that takes over, and nothing of what was begun", async () => {
    const port = await serve(framework, (_req, res, next) => {
      res.type("text").write("half of an answer");
      next(Object.assign(new Error("no"), { status: 500 }));
    });
    const got = await exchange(port, signedRequest());
    expect(verifyReceipt(got, { keys })).toMatchObject({ status: 500 });
    expect(String(got.body)).not.toContain("half");
  });

  test.each<[string, SignResponseOptions["signer"]["sign"]]>([
    [
      "throws",
      () => {
        throw new Error("out of order");
      },
    ],
    ["rejects", () => Promise.reject(new Error("out of order"))],
    ["never answers", () => new Promise(() => {})],
    ["gives no bytes", () => "signature" as never],
  ])("answers 503 when the signer %s, and says so", async (_kind, make) => {
    const port = await serve(framework, (_req, res) => void res.json({ paid: true }), {
      signer: { alg: "ed25519", keyid: "platform-2026", sign: make },
      signTimeoutMs: 50,
    });
    const { status, headers, body } = await exchange(port, signedRequest());
    expect([status, headers["retry-after"], headers["signature"]]).toEqual([503, "1", undefined]);
    expect(String(body)).not.toContain("paid");
    expect(notices.heard).toEqual([
      expect.objectContaining({ guard: "signResponse", code: "signing-failed" }),
    ]);
  });

  test("answers 500 in place of a body over the limit, and says so", async () => {
    const port = await serve(framework, (_req, res) => void res.send("x".repeat(33)), { limit: 32 });
    expect(await exchange(port, signedRequest())).toMatchObject({ status: 500 });
    expect(notices.heard).toEqual([expect.objectContaining({ code: "answer-too-large" })]);
  });

  test("signs a body of exactly the limit", async () => {
    const port = await serve(framework, (_req, res) => void res.send("x".repeat(32)), { limit: 32 });
    expect(verifyReceipt(await exchange(port, signedRequest()), { keys })).toMatchObject({ status: 200 });
  });

  test("signs further components, with a label, a tag and a time of one's own", async () => {
    const port = await serve(framework, (_req, res) => void res.set("X-Batch", "7").json({}), {
      components: ["x-batch"],
      label: "mine",
      tag: "payout-receipt",
      clock: () => 1_800_000_000_999,
    });
    const got = await exchange(port, signedRequest());
    const now = 1_800_000_001;
    const receipt = verifyReceipt(got, { keys, label: "mine", tag: "payout-receipt", now });
    expect(receipt).toMatchObject({ label: "mine", created: 1_800_000_000 });
    expect(got.headers["signature-input"]).toContain('"x-batch"');
  });

  test.each<[string, string[]]>([
    ["by itself", []],
    ["and where it is a further component too", ["location"]],
    ["and where that is written in full", ['"location"']],
  ])("covers Location, %s", async (_when, components) => {
    const port = await serve(framework, (_req, res) => void res.location("/payouts/1").json({}), {
      components,
    });
    const got = await exchange(port, signedRequest());
    expect(verifyReceipt(got, { keys })).toMatchObject({ status: 200 });
    const elsewhere = got.rawHeaders.map((value) => (value === "/payouts/1" ? "/payouts/2" : value));
    expect(() => verifyReceipt({ ...got, rawHeaders: elsewhere }, { keys })).toThrow(
      expect.objectContaining({ code: "signature-mismatch" }),
    );
  });

  test("answers 503 when a further component is not there", async () => {
    const port = await serve(framework, (_req, res) => void res.json({}), { components: ["x-batch"] });
    expect(await exchange(port, signedRequest())).toMatchObject({ status: 503 });
  });

  test("lets a response be destroyed", async () => {
    const port = await serve(framework, (_req, res) => void res.destroy());
    await expect(exchange(port, signedRequest())).rejects.toThrow();
  });
});

const signer = createSigner(generateKeyPairSync("ed25519").privateKey, "platform");

describe("the options of signResponse", () => {
  test.each<[string, unknown, string | undefined]>([
    ["no options", undefined, undefined],
    ["no signer", {}, "signer"],
    ["a signer without a keyid", { signer: { ...signer, keyid: "" } }, "signer"],
    ["a signer of another algorithm", { signer: { ...signer, alg: "none" } }, "signer"],
    ["a signer that cannot sign", { signer: { ...signer, sign: "x" } }, "signer"],
    ["a component that is none", { signer, components: ["X-Upper"] }, "components"],
    ["a component that a receipt has anyway", { signer, components: ["content-digest"] }, "components"],
    ["a component that no response has", { signer, components: ["@method"] }, "components"],
    ["a component twice", { signer, components: ["x-a", "x-a"] }, "components"],
    ["components that are no list", { signer, components: "x-batch" }, "components"],
    ["an upper-case label", { signer, label: "Receipt" }, "label"],
    ["an empty tag", { signer, tag: "" }, "tag"],
    ["no limit", { signer, limit: 0 }, "limit"],
    ["no time to sign", { signer, signTimeoutMs: 0 }, "signTimeoutMs"],
    ["a clock that is none", { signer, clock: 1 }, "clock"],
    ["another option", { signer, key: 1 }, "key"],
  ])("are checked when it is built: %s", (_name, options, option) => {
    const expected = expect.objectContaining({ name: "TypeError", factory: "signResponse", option });
    expect(() => signResponse(options as never)).toThrow(expected);
    expect(() => responseSigner(options as never)).toThrow(expected);
  });
});
