import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { OptionRule } from "@countersign/core/internal";
import { describe, expect, test } from "@jest/globals";
import { policyTable as digestPolicy } from "../../packages/checks/content-digest/dist/options.js";
import { hmacTable as explainHmac } from "../../packages/tools/cli/dist/explain/explain-hmac.js";
import { table as keyUse } from "../../packages/checks/http-signature-verify/dist/key-use.js";
import { table as memoryNonceStore } from "../../packages/checks/http-signature-verify/dist/nonce-store.js";
import { answersTable as memoryAnswerStore } from "../../packages/kernel/idempotency/dist/answers.js";
import { table as memoryIdempotencyStore } from "../../packages/kernel/idempotency/dist/memory-store.js";
import { rulesTable as compileAllowlist } from "../../packages/checks/ip-allowlist/dist/allowlist.js";
import { table as createOutcomes } from "../../packages/endpoints/countersign/dist/outcomes/options.js";
import { table as createTaskQueue } from "../../packages/kernel/idempotency/dist/work/task-queue.js";
import { createTable as createWebhookEndpoint } from "../../packages/endpoints/countersign/dist/client/service-client.js";
import { tablesTable as postgresTables } from "../../packages/stores/store-sql/dist/postgres/table-names.js";
import { fieldTable as payloadField } from "../../packages/checks/webhook-hmac/dist/options.js";
import { signTable as signPayloadHeaders } from "../../packages/checks/webhook-hmac/dist/payload-headers.js";
import { table as generateEndpoint } from "../../packages/endpoints/countersign/dist/webhooks/endpoint/generate-endpoint.js";
import { httpsTable as httpsOnly } from "../../packages/endpoints/countersign/dist/webhooks/endpoint/webhook-endpoint-options.js";
import { optionTables } from "../../site/scripts/option-tables.mjs";
import { packagePage } from "./package-pages.ts";
import { optionsOfCall, optionTables as tablesOf, plain } from "./written-options.ts";

const keysPage = "site/pages/guide/keys.md";

type Rules = Readonly<Record<string, OptionRule<unknown>>>;

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");
const pages = readdirSync(join(root, "site/pages"), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".md"))
  .map((file) => [file, read(`site/pages/${file}`)] as const);
const tables = pages.flatMap(([file, text]) => tablesOf(text).map((table) => ({ file, table })));

const defaultsOf = (rules: Rules): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(rules).map(([option, rule]) => [option, plain(rule.byDefault)]));

test.each(Object.entries(optionTables))(
  "a page tells the options of %s, each with its default",
  (_name, { rules }) => {
    expect(tables.map(({ table }) => table)).toContainEqual(defaultsOf(rules));
  },
);

// Of the engine, of tests of stores, of the sandbox, and of what a server tells the fetch adapter: no rules read them.
const withoutRules = new Set(
  ["http-message-signatures", "sandbox", "store-contract", "fetch"].map(
    (name) => `reference/packages/${name}.md`,
  ),
);
const known = Object.values(optionTables).map(({ rules }) => defaultsOf(rules));

test.each(tables.filter(({ file }) => !withoutRules.has(file)))(
  "a table of options in $file has the rules of a factory",
  ({ table }) => {
    expect(known).toContainEqual(table);
  },
);

// A doc comment says the default too.
const literal = /\b[Dd]efault:? (`[^`]+`|"[^"]+"|[\d,]+\d|\d|true|false)(?=[.,;:](?: |$))/;
const rows = pages.flatMap(([file, text]) =>
  [...text.matchAll(/^\| `(\w+)` +\| ([^|]+) +\| (.+?) +\|$/gm)].map(
    ([, option, byDefault = "", meaning = ""]) => ({
      file,
      option,
      byDefault,
      told: literal.exec(meaning)?.[1],
    }),
  ),
);

test.each(rows.filter(({ told }) => told !== undefined))(
  "$option in $file means what its column says",
  ({ byDefault, told = "" }) => {
    const bare = (text: string): string => plain(text).replaceAll('"', "");
    expect(bare(told)).toBe(bare(byDefault));
  },
);

/** The package whose README tells all its options, or the page that tells them in a call. */
const written: readonly [name: string, place: number | string, rules: Rules][] = [
  ["outcomes", 0, createOutcomes],
  ["work", 0, createTaskQueue],
  ["content-digest", "verifyContentDigest", digestPolicy],
  ["explain", "explainHmac", explainHmac],
  ["http-signature-verify", "memoryNonceStore", memoryNonceStore],
  ["idempotency", "memoryIdempotencyStore", memoryIdempotencyStore],
  ["idempotency", "memoryAnswerStore", memoryAnswerStore],
  ["ip-allowlist", "compileAllowlist", compileAllowlist],
  ["client", "client.createWebhookEndpoint", createWebhookEndpoint],
  ["postgres", "migrate", postgresTables],
  ["postgres", "postgresMigration", postgresTables],
  ["webhook-hmac", "signPayloadHeaders", signPayloadHeaders],
  ["webhook-hmac", "verifyPayload", payloadField],
  ["webhooks", "generateEndpoint", generateEndpoint],
  ["webhooks", "httpsOnly", httpsOnly],
  [keysPage, "keyUse", keyUse],
];

const pageOf = (name: string): string => (name.endsWith(".md") ? read(name) : packagePage(name));

describe.each(written)("the page of %s tells the options of %s", (name, place, rules) => {
  if (typeof place === "number") {
    test("in a table, each with the default that the code has", () => {
      expect(tablesOf(pageOf(name))[place]).toEqual(defaultsOf(rules));
    });
  } else {
    test("in the call, each with the default that the code has, unless words say it better", () => {
      const byDefault = Object.entries(defaultsOf(rules));
      const told = byDefault.map(([option, text]) => [option, isLiteral(text) ? text : undefined]);
      expect(optionsOfCall(pageOf(name), place)).toStrictEqual(Object.fromEntries(told));
    });
  }
});

// Each of these is a decision: whoever listens on the channel sees it.
test("countersign:built shows of all options these, and no other", () => {
  const all: readonly (readonly [string, Rules])[] = [
    ...Object.entries(optionTables).map(([name, { rules }]) => [name, rules] as const),
    ...written.map(([, place, rules]) => [String(place), rules] as const),
  ];
  const shown = all.flatMap(([name, rules]) => {
    const options = Object.keys(rules).filter((option) => rules[option]?.show !== undefined);
    return options.length === 0 ? [] : [[name, options.join(" ")]];
  });
  expect(shown).toEqual([
    [
      "httpSignatureVerify",
      "keys requiredComponents requiredParameters allowUnsignedQuery allowUnsignedBody",
    ],
    ["fastify", "clientAddress scheme"],
    ["idempotencyGuard", "store"],
    ["ipAllowlist", "allow dangerouslyAllowAnyAddress"],
    ["payoutEndpoint", "findBusiness"],
    ["webhookBasicAuth", "password credentials"],
    ["webhookHmac", "secret secrets"],
    ["memoryNonceStore", "allowInProduction"],
    ["memoryIdempotencyStore", "allowInProduction"],
    ["httpsOnly", "dangerouslyAllowHttp"],
  ]);
});

function isLiteral(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
