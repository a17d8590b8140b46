// The same middlewares in other orders: what the page "Compose the middlewares" says of each is what comes.
import { readFileSync } from "node:fs";
import { expressVersionsWith, type ExpressFactory } from "@countersign/test-support/runs/express-versions.ts";
import { strangerKey } from "@countersign/test-support/signers/test-keys.ts";
import { describe, expect, test } from "@jest/globals";
import express from "express";
import express4 from "express4";
import {
  instruction,
  move,
  payout,
  platformOn,
  send,
  sha512Field,
  webhook,
  type Platform,
  type Sent,
} from "./platform.ts";

const page = readFileSync(new URL("../../../site/pages/guide/middlewares.md", import.meta.url), "utf8");
const rows = new Map(
  [...page.matchAll(/^\| (`.*?) *\| (\d.*?) *\|$/gm)].map(([, order = "", response = ""]) => [
    order,
    response,
  ]),
);

type Result = readonly [status: number, code: string | undefined];

interface Row {
  readonly order: string;
  /** Changes the order in an app. */
  readonly change: (platform: Platform) => void;
  readonly sent: readonly Sent[];
  /** In the order of the example. */
  readonly before: readonly Result[];
  readonly after: readonly Result[];
}

const paid = [200, undefined] as const;
const swap =
  (name: string, place: "before" | "after", other: string) =>
  ({ app }: Platform): void =>
    move(app, name, place, other);

const guardBefore = (name: string): Row => ({
  order: `\`idempotencyGuard\` before \`${name}\``,
  change: swap("idempotencyGuard", "before", name),
  sent: [payout()],
  before: [paid],
  after: [[500, "checked-after-claim"]],
});

const webhookFirst = (name: string): Row => ({
  order: `\`receiveWebhook\` before \`${name}\``,
  change: swap("receiveWebhook", "before", name),
  sent: [webhook()],
  before: [paid],
  after: [[404, "checked-after-claim"]],
});

const copied = { nonce: "nonce-1" };
const byOther = { ...payout(copied), fields: { ...payout(copied).fields, "X-Forwarded-For": "192.0.2.11" } };
const large = { ...instruction, reference: "x".repeat(66_000) };
const bySha512 = payout({ ...copied, contentDigest: sha512Field(JSON.stringify(instruction)) });

const table: readonly Row[] = [
  ...["ipAllowlist", "contentDigest", "httpSignatureVerify", "jsonBody"].map(guardBefore),
  {
    order: "`jsonBody` before `rawBody`",
    change: swap("jsonBody", "before", "rawBody"),
    sent: [payout()],
    before: [paid],
    after: [[500, "raw-body-missing"]],
  },
  {
    order: "`express.json()` before `rawBody`",
    change: ({ app }) => move(app, express.json(), "before", "rawBody"),
    sent: [payout()],
    before: [paid],
    after: [[500, "body-already-consumed"]],
  },
  ...["webhookBasicAuth", "webhookHmac"].map(webhookFirst),
  {
    order: "`ipAllowlist` after `httpSignatureVerify`",
    change: swap("ipAllowlist", "after", "httpSignatureVerify"),
    sent: [payout(), byOther, payout(copied)],
    before: [paid, [401, "ip-not-allowed"], [409, "already-processed"]],
    after: [paid, [401, "ip-not-allowed"], [401, "nonce-replayed"]],
  },
  {
    order: "`contentDigest` after `httpSignatureVerify`",
    change: swap("contentDigest", "after", "httpSignatureVerify"),
    sent: [payout(), bySha512, payout(copied)],
    before: [paid, [401, "content-digest-unsupported"], [409, "already-processed"]],
    after: [paid, [401, "content-digest-unsupported"], [401, "nonce-replayed"]],
  },
  {
    order: "`jsonBody` before `httpSignatureVerify`",
    change: swap("jsonBody", "before", "httpSignatureVerify"),
    sent: [payout(), payout({ body: "{", key: strangerKey })],
    before: [paid, [401, "signature-mismatch"]],
    after: [paid, [400, "json-invalid"]],
  },
  {
    order: "`rawBody` after `contentDigest`",
    change: swap("rawBody", "after", "contentDigest"),
    sent: [payout({ body: JSON.stringify(large) })],
    before: [[413, "body-too-large"]],
    after: [paid],
  },
  {
    order: "`webhookHmac` before `webhookBasicAuth`",
    change: swap("webhookHmac", "before", "webhookBasicAuth"),
    sent: [webhook(), webhook({ Authorization: undefined }, " ".repeat(1_048_577))],
    before: [paid, [404, "credentials-missing"]],
    after: [paid, [404, "body-too-large"]],
  },
];

test("the page has these orders, each once", () => {
  expect([...rows.keys()]).toEqual(table.map(({ order }) => order));
});

describe.each(expressVersionsWith(express4))("on %s", (_version, framework: ExpressFactory) => {
  test.each(table)("$order", async ({ order, change, sent, before, after }) => {
    expect(await resultsOf(platformOn(framework), sent)).toEqual(before);
    const platform = platformOn(framework);
    change(platform);
    expect(await resultsOf(platform, sent)).toEqual(after);
    const [status, code] = after[0] ?? [];
    const response = rows.get(order) ?? "";
    // Hidden, a 500 is a 404.
    expect(response).toMatch(status === 404 ? /^500 .* which `hide` makes a 404$/ : `${status}`);
    if (code !== undefined) expect(response).toContain(`\`${code}\``);
    const last = after.length > 1 ? String(after.at(-1)?.[0]) : "";
    if (last !== "404") expect(response).toContain(last);
  });
});

async function resultsOf({ app }: Platform, sent: readonly Sent[]): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (const one of sent) {
    // oxlint-disable-next-line no-await-in-loop -- later ones depend on earlier ones
    const { status, code } = await send(app, one);
    results.push([status, code]);
  }
  return results;
}
