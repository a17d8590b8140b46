import { once } from "node:events";
import type { Server } from "node:http";
import { connect } from "node:net";
import { describe, expect, test } from "@jest/globals";
import { contentDigest, createContentDigest } from "@countersign/content-digest";
import { captureRawBody, rawBody } from "@countersign/raw-body";
import request from "supertest";
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

  test.each<[string, Buffer]>([
    ["pretty-printed JSON", Buffer.from('{\n\t"a" :  1\n}\n')],
    ["unicode escapes", Buffer.from(String.raw`{"name":"M\u00fcller"}`)],
    ["a byte order mark", Buffer.from('\uFEFF{"a":1}')],
    ["emoji", Buffer.from('{"a":"🏦"}')],
    ["CRLF", Buffer.from('{\r\n"a":1}\r\n')],
    ["no JSON at all", Buffer.from([0xff, 0x00, 0xc3, 0x28])],
    ["no body", Buffer.alloc(0)],
  ])("takes the bytes as sent: %s", async (_name, body) => {
    const { app, handled, refusals } = appWith(express, contentDigest());
    const field = createContentDigest(body, "sha-512");
    expect(await exchange(app, field, body)).toMatch(/^HTTP\/1.1 204 /);
    const tampered = Buffer.concat([body, Buffer.from(" ")]);
    expect(await exchange(app, field, tampered)).toMatch(/^HTTP\/1.1 401 /);
    expect(handled).toEqual([body]);
    expect(refusals.map(({ code }) => code)).toEqual(["content-digest-mismatch"]);
  });

  test.each([
    ["missing", "content-digest-missing", undefined],
    ["malformed", "content-digest-invalid", "sha-256=1"],
    ["unsupported", "content-digest-unsupported", "md5=:AAAA:"],
  ])("refuses a %s field before it reads the body", async (_name, code, field) => {
    const { app, handled, refusals } = appWith(express, contentDigest());
    // The announced body never comes: only an answer without it ends the exchange.
    expect(await exchange(app, field, Buffer.alloc(0), 1000)).toMatch(/^HTTP\/1.1 401 /);
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

  test("refuses a content coding", async () => {
    const { app, refusals } = appWith(express, contentDigest());
    const field = createContentDigest(Buffer.from("x"));
    await request(app)
      .post("/payouts")
      .set({ "Content-Digest": field, "Content-Encoding": "gzip" })
      .send("x")
      .expect(415);
    expect(refusals.map(({ code }) => code)).toEqual(["content-encoding-unsupported"]);
  });

  test("reports a parser that came first, and does not check an empty buffer instead", async () => {
    const { app, refusals, handled } = appWith(express, express.json(), contentDigest());
    const field = createContentDigest(Buffer.alloc(0));
    await request(app).post("/payouts").type("json").set("Content-Digest", field).send("{}").expect(500);
    expect(refusals.map(({ code }) => code)).toEqual(["body-already-consumed"]);
    expect(handled).toEqual([]);
  });
});

/** Sends a body byte for byte, or announces `announcedLength` bytes, and returns the answer. */
async function exchange(
  app: ReturnType<typeof appWith>["app"],
  field: string | undefined,
  body: Buffer,
  announcedLength: number = body.length,
): Promise<string> {
  const server: Server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const socket = connect(address.port, "127.0.0.1");
  const head = [
    "POST /payouts HTTP/1.1",
    "Host: a",
    "Connection: close",
    `Content-Length: ${announcedLength}`,
  ];
  if (field !== undefined) head.push(`Content-Digest: ${field}`);
  socket.write(Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), body]));
  let answer = "";
  socket.setEncoding("latin1").on("data", (chunk: string) => {
    answer += chunk;
  });
  await once(socket, "close");
  server.closeAllConnections();
  server.close();
  return answer;
}
