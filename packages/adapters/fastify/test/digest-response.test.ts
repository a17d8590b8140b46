import { createHash } from "node:crypto";
import { digestResponse } from "@countersign/content-digest";
import { expect, test } from "@jest/globals";
import { fastify } from "fastify";

test("digestResponse gives Fastify's answers their digests in an onRequest hook", async () => {
  const app = fastify();
  const middleware = digestResponse();
  app.addHook("onRequest", (request, reply, done) => {
    middleware(request.raw, reply.raw, (error) => done(error as Error | undefined));
  });
  app.get("/", () => ({ paid: true }));
  app.get("/none", (_request, reply) => reply.code(204).send());
  await app.listen({ port: 0, host: "127.0.0.1" });
  const { port } = app.server.address() as { port: number };
  try {
    for (const path of ["/", "/unknown"]) {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`);
      const digest = createHash("sha256")
        .update(await answer.text())
        .digest("base64");
      expect(answer.headers.get("content-digest")).toBe(`sha-256=:${digest}:`);
    }
    expect((await fetch(`http://127.0.0.1:${port}/none`)).headers.has("content-digest")).toBe(false);
  } finally {
    await app.close();
  }
});
