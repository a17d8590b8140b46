import { createHash, sign } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { defaultComponents, importVerificationKey, verify } from "@countersign/http-message-signatures";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { payoutEndpoint } from "countersign/payout";
import { buildPayoutRequest, sendPayout } from "@countersign/devtools/sandbox";
import { serviceKey, servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";
import { expect, test } from "@jest/globals";
import express from "express";
import { workspacePackages } from "../../scripts/workspace.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const folders = [...workspacePackages.values()].map(({ folder }) => join(root, folder, "src"));

const sources = folders.flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .map((path) => join(folder, path)),
);
const cited = sources.flatMap((path) =>
  [...readFileSync(path, "utf8").matchAll(/\(spec, "([^"]+)"/g)].map(([, section = ""]) => section),
);
const sections = [...readFileSync(join(root, "docs", "spec.md"), "utf8").matchAll(/^## (.+)$/gm)];

test("every section of the spec that code cites is one of docs/spec.md", () => {
  expect(new Set(cited).size).toBeGreaterThan(3);
  expect(sections.map(([, title]) => title)).toEqual(expect.arrayContaining([...new Set(cited)]));
});

test("the page on where to put what names files that are there", () => {
  const page = readFileSync(join(root, "docs", "architecture.md"), "utf8");
  const table = page.slice(page.indexOf("## Where to put what"), page.indexOf("# The key"));
  const named = [...table.matchAll(/`((?:test|examples|[a-z-]+\/src)\/[^`]+|[a-z-]+\/src)`/g)].map(
    ([, path = ""]) => path,
  );
  const groups = new Set([...workspacePackages.values()].map(({ folder }) => dirname(folder)));
  const found = (path: string): boolean =>
    ["", ...groups].some((group) => {
      const [parent, last] = [dirname(join(root, group, path)), path.split("/").at(-1) ?? ""];
      try {
        return readdirSync(parent).includes(last);
      } catch {
        return false;
      }
    });
  expect(named.length).toBeGreaterThan(8);
  expect(named.filter((path) => !found(path))).toEqual([]);
});

const signedSection = (): string => {
  const page = readFileSync(join(root, "docs", "spec.md"), "utf8");
  return page.slice(page.indexOf("## A signed request"), page.indexOf("# Webhooks:"));
};

test("the body of the spec that has all fields is paid", async () => {
  const [, body = ""] = /^```json\n([^]*?)\n```$/m.exec(signedSection()) ?? [];
  const app = express();
  const receive = payoutEndpoint({
    addresses: { allow: ["127.0.0.1"] },
    signature: { keys: { "test-key-ed25519": servicePublicPem }, nonces: memoryNonceStore() },
    idempotency: { store: memoryIdempotencyStore() },
    referenceField: "reference",
  });
  app.post("/api/v1/transaction", receive, (_req, res) => void res.end());
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1/transaction`;
  const privateKey = serviceKey.export({ type: "pkcs8", format: "pem" }).toString();
  const request = buildPayoutRequest({ url, bodyText: body, keyid: "test-key-ed25519", privateKey });
  expect((await sendPayout(request)).status).toBe(200);
  server.close();
  server.closeAllConnections();
});

test("the signed request of the spec verifies, and its parts are those of the test key", () => {
  const blocks = [...signedSection().matchAll(/^( *)```\w+\n([^]*?)\n\1```$/gm)].map(
    ([, indent = "", text = ""]) =>
      text.replaceAll(new RegExp(`^${indent}`, "gm"), "").replaceAll(/\\\n */g, ""),
  );
  const [pkcs8, body = "", base = "", request = ""] = blocks;
  expect(pkcs8).toBe(serviceKey.export({ type: "pkcs8", format: "der" }).toString("base64"));
  const [head = "", sent] = request.split("\n\n");
  expect(sent).toBe(body);
  const [start = "", ...lines] = head.split("\n");
  const fields = new Map(
    lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(": ") + 2)]),
  );
  const digest = createHash("sha256").update(body).digest("base64");
  expect(fields.get("Content-Digest")).toBe(`sha-256=:${digest}:`);
  expect(fields.get("Signature")).toBe(
    `sig1=:${sign(null, Buffer.from(base), serviceKey).toString("base64")}:`,
  );
  const [method = "", target = ""] = start.split(" ");
  const received = verify(
    { method, target, rawHeaders: [...fields].flat() },
    {
      requiredComponents: defaultComponents,
      algorithms: ["ed25519"],
      windowSeconds: 60,
      clockSkewSeconds: 30,
      now: 1_790_000_030,
      keys: () => importVerificationKey("test-key-ed25519", servicePublicPem),
    },
  );
  expect(received.keyid).toBe("test-key-ed25519");
});
