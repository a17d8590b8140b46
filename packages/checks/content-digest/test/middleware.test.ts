import { describe, expect, test } from "@jest/globals";
import { contentDigest, createContentDigest } from "@countersign/content-digest";
import { captureRawBody, rawBody } from "@countersign/raw-body";
import request from "supertest";
import { exchange, withServer } from "@countersign/test-support/servers/wire.ts";
import { appWith, expressVersions } from "./harness.ts";

describe.each(expressVersions)("contentDigest on %s", (_version, express) => {
  test.each([
    ["alone", [contentDigest()]],
    ["after rawBody()", [rawBody(), contentDigest()]],
    ["twice", [contentDigest(), contentDigest({ algorithms: ["sha-256"] })]],
    [
      "after express.json({ verify: captureRawBody })",
      [express.json({ verify: captureRawBody }), contentDigest()],
    ],
    ["after express.raw()", [express.raw({ type: "*/*" }), contentDigest()]],
  ])("verifies %s", async (_name, chain) => {
    const body = '{ "amount": 10.10 }';
    const { app, handled } = appWith(express, ...chain);
    const send = (sent: string): request.Test =>
      request(app)
        .post("/payouts")
        .type("application/json")
        .set("Content-Digest", createContentDigest(Buffer.from(body)))
        .send(sent);
    await send(body).expect(204);
    await send(body.replace("10.10", "10.11")).expect(401);
    expect(handled).toEqual([Buffer.from(body)]);
  });

  test.each([
    ["missing", "content-digest-missing", undefined],
    ["malformed", "content-digest-invalid", "sha-256=1"],
    ["unsupported", "content-digest-unsupported", "md5=:AAAA:"],
  ])("refuses a %s field before it reads the body", async (_name, code, field) => {
    const { app, handled, refusals } = appWith(express, contentDigest());
    // The announced body never comes: only an answer without it ends the exchange.
    expect(await answerTo(app, field)).toMatch(/^HTTP\/1.1 401 /);
    expect(refusals.map((refusal) => refusal.code)).toEqual([code]);
    expect(handled).toEqual([]);
  });

  test("answers every refusal alike", async () => {
    const { app } = appWith(express, contentDigest());
    const fields = ["", "x", "md5=:AAAA:", createContentDigest(Buffer.from("other"))];
    const answers = await Promise.all(
      fields.map((field) =>
        request(app).post("/payouts").set("Content-Digest", field).send("body").expect(401),
      ),
    );
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(new Set(answers.map(({ headers }) => Object.keys(headers).join())).size).toBe(1);
  });

  test("answers another status with the algorithms it wants", async () => {
    const { app } = appWith(express, contentDigest({ status: 400, algorithms: ["sha-512", "sha-256"] }));
    const captured = appWith(express, rawBody(), contentDigest({ status: 422, algorithms: ["sha-256"] }));
    const answer = await request(app).post("/payouts").send("x").expect(400);
    expect(answer.headers["want-content-digest"]).toBe("sha-512=10, sha-256=9");
    const later = await request(captured.app).post("/payouts").send("x").expect(422);
    expect(later.headers["want-content-digest"]).toBe("sha-256=10");
  });

  test("lets a request without the field pass where it is not required, unread", async () => {
    const { app, handled } = appWith(express, contentDigest({ required: false }));
    await request(app).post("/payouts").send("x").expect(204);
    await request(app)
      .post("/payouts")
      .set("Content-Digest", createContentDigest(Buffer.from("y")))
      .send("x")
      .expect(401);
    expect(handled).toEqual([undefined]);
  });

  test("holds the body to its limit", async () => {
    const { app, refusals } = appWith(express, contentDigest({ limit: 3 }));
    const field = createContentDigest(Buffer.from("four"));
    await request(app).post("/payouts").set("Content-Digest", field).send("four").expect(413);
    expect(refusals.map(({ code }) => code)).toEqual(["body-too-large"]);
  });
});

/** Sends a field and the head of a body of 1,000 bytes that never comes, and returns the answer. */
async function answerTo(app: ReturnType<typeof appWith>["app"], field: string | undefined): Promise<string> {
  const line = field === undefined ? "" : `Content-Digest: ${field}\r\n`;
  const head = `POST /payouts HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1000\r\n${line}\r\n`;
  return withServer(app, (port) => exchange(port, head));
}
