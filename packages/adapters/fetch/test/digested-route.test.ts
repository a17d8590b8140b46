import { createHash } from "node:crypto";
import { digestedRoute } from "@countersign/fetch";
import { describe, expect, test } from "@jest/globals";

const sha256 = (bytes: string): string => `sha-256=:${createHash("sha256").update(bytes).digest("base64")}:`;
const ask = (route: ReturnType<typeof digestedRoute>, init?: RequestInit): Promise<Response> =>
  route(new Request("http://platform.example/", init));

describe("digestedRoute", () => {
  test("gives an answer its digests, and leaves the rest", async () => {
    const route = digestedRoute(
      { fields: ["Content-Digest", "Repr-Digest"] },
      async () => new Response("abc", { status: 201, headers: { "X-A": "1" } }),
    );
    const response = await ask(route);
    expect([response.status, response.headers.get("x-a"), await response.text()]).toEqual([201, "1", "abc"]);
    for (const field of ["content-digest", "repr-digest"]) {
      expect(response.headers.get(field)).toBe(sha256("abc"));
    }
  });

  test("goes by what the request wants", async () => {
    const route = digestedRoute({ onlyWanted: true }, async () => new Response("abc"));
    expect((await ask(route)).headers.has("content-digest")).toBe(false);
    const wanted = await ask(route, { headers: { "Want-Content-Digest": "sha-256=1" } });
    expect(wanted.headers.get("content-digest")).toBe(sha256("abc"));
  });

  test.each<[string, () => Response, RequestInit]>([
    ["HEAD", () => new Response("abc"), { method: "HEAD" }],
    ["204", () => new Response(null, { status: 204 }), {}],
    ["an answer that has one", () => new Response("abc", { headers: { "Content-Digest": "mine" } }), {}],
  ])("adds none to %s", async (_name, make, init) => {
    const made = make();
    expect(
      await ask(
        digestedRoute({}, async () => made),
        init,
      ),
    ).toBe(made);
  });

  test("lets an answer of over a megabyte out as it comes", async () => {
    let pulled = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        pulled += 1;
        if (pulled <= 40) controller.enqueue(new Uint8Array(65_536));
        else controller.close();
      },
    });
    const response = await ask(digestedRoute({}, async () => new Response(endless)));
    expect(response.headers.has("content-digest")).toBe(false);
    expect((await response.arrayBuffer()).byteLength).toBe(40 * 65_536);
  });

  test("lets a client leave over the limit, whose source fails by that", async () => {
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(65_536)),
      cancel: () => {
        throw new Error("source");
      },
    });
    const response = await ask(digestedRoute({}, async () => new Response(endless)));
    await expect(response.body?.cancel()).rejects.toThrow("source");
    // A rejection that nobody hears would be told by now.
    await new Promise((resolve) => void setImmediate(resolve));
  });

  test("throws on a bad option at once", () => {
    expect(() => digestedRoute({ fields: [] }, async () => new Response())).toThrow(TypeError);
  });
});
