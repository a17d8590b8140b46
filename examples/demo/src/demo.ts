import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import path from "node:path";
import { assertFreePort, type Environment, parsePort, SettingError } from "@countersign/example-settings";
import { z } from "zod";
import { listedIp, runCases, runPaidKeyAgain, type CaseResult } from "./cases.ts";
import { lastingFolder, temporaryFolder } from "./folder.ts";
import { demoKeyid, prepareDemo, type DemoSetup } from "./setup.ts";
import { startDemoService, type DemoService } from "./service.ts";
import { DemoStartError, startDemoPlatform, type DemoPlatform } from "./platform.ts";
import { runRotation } from "./rotation.ts";
import { formatTable } from "./table.ts";
import { runWebhookCases, type WebhookTarget } from "./webhook-cases.ts";
import { missEvent, runAfterRestart } from "./webhook-restart.ts";
import { onceSignalled } from "@countersign/example-platform/process/signals";

const inspectedSchema = z.array(z.object({ idempotency_key: z.string() }));
const payoutPath = "/api/v1/transaction";

/** Where the demo keeps its files when it goes on serving, and from where the user's relative paths count. */
export interface DemoPlaces {
  readonly folder: string;
  readonly cwd: string;
}

/**
 * `npm start`: shows the exchange as a table, then serves until a signal. With `--once` it works in a temporary folder on any
 * port and ends after the table. The exit code is 0 when every case was as expected.
 */
export async function runDemo(args: readonly string[], places: DemoPlaces): Promise<void> {
  const unknown = args.find((arg) => arg !== "--once");
  if (unknown !== undefined) {
    console.error(`npm start: expected no argument or --once, got ${JSON.stringify(unknown)}`);
    process.exitCode = 1;
    return;
  }
  const running = new Set<DemoPlatform>();
  onceSignalled(() => void stopAll(running).then(() => process.exit()));
  try {
    await (args.length > 0 ? demonstrateOnce(running) : demonstrateAndServe(running, places));
  } catch (error) {
    if (!(error instanceof DemoStartError || error instanceof SettingError)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  } finally {
    await stopAll(running);
  }
}

async function demonstrateOnce(running: Set<DemoPlatform>): Promise<void> {
  const folder = temporaryFolder("countersign-demo-");
  try {
    await demonstrate(running, folder, "0");
    await stopAll(running);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function demonstrateAndServe(running: Set<DemoPlatform>, { folder, cwd }: DemoPlaces): Promise<void> {
  const port = parsePort("PORT", process.env["PORT"] ?? "3000");
  // Before the key files of another demo on this port are replaced.
  await assertFreePort(port, "npm start");
  const place = lastingFolder(folder, String(port));
  const demonstration = await demonstrate(running, place, String(port));
  console.log(instructions(demonstration, path.relative(cwd, place) || "."));
  await demonstration.platform.ended;
}

/** What the demo works with and what it leaves running. */
interface Demonstration {
  readonly platform: DemoPlatform;
  readonly webhook: DemoSetup["webhook"];
}

async function demonstrate(running: Set<DemoPlatform>, folder: string, port: string): Promise<Demonstration> {
  const setup = prepareDemo(folder);
  const start = async (changes: Environment): Promise<DemoPlatform> => {
    const platform = await startDemoPlatform({ ...setup.env, ...changes }, setup.logFile);
    running.add(platform);
    return platform;
  };
  const service = await startDemoService();
  try {
    const { platform, results } = await showCases({ setup, service, start, port });
    console.log(formatTable(results));
    if (!results.every(({ ok }) => ok)) process.exitCode = 1;
    return { platform, webhook: setup.webhook };
  } finally {
    await service.close();
  }
}

interface Stage {
  readonly setup: DemoSetup;
  readonly service: DemoService;
  readonly start: (changes: Environment) => Promise<DemoPlatform>;
  readonly port: string;
}

async function showCases({
  setup,
  service,
  start,
  port,
}: Stage): Promise<{ readonly platform: DemoPlatform; readonly results: readonly CaseResult[] }> {
  const first = await start({ PORT: port });
  const strict = await start({
    PORT: "0",
    TRUST_PROXY: "127.0.0.1",
    PAYOUT_ALLOWED_IPS: listedIp,
    WEBHOOK_ALLOW_HTTP: undefined,
  });
  const target = { url: first.url + payoutPath, proxiedUrl: strict.url + payoutPath, key: setup.key };
  const goodKey = `payout-${randomUUID()}.funding-1.business-1`;
  const payouts = await runCases(target, goodKey);
  const rotation = await runRotation(target, setup.keysFile);
  const webhooks = await runWebhookCases(service, webhookTarget(setup, first.url, strict.url));
  await Promise.all([first.kill(), strict.stop()]);
  const missedEventId = await missEvent(webhooks.exchange);
  // Where the service knows it.
  const platform = await start({ PORT: new URL(first.url).port });
  const results = [
    ...payouts,
    ...rotation,
    await runPaidKeyAgain(target, goodKey),
    await countRows(platform.url, goodKey),
    ...webhooks.results,
    ...(await runAfterRestart(webhooks.exchange, missedEventId, platform.url)),
  ];
  return { platform, results };
}

function webhookTarget({ webhook, databaseFile }: DemoSetup, url: string, strictUrl: string): WebhookTarget {
  const { path: route, ...credentials } = webhook;
  return { endpoint: { ...credentials, url: url + route }, httpsOnlyUrl: strictUrl + route, databaseFile };
}

async function countRows(url: string, key: string): Promise<CaseResult> {
  const response = await fetch(`${url}/inspect/payouts`);
  const payouts = inspectedSchema.parse(await response.json());
  const got = String(payouts.filter((payout) => payout.idempotency_key === key).length);
  return { name: "payments under that key", expected: "1", got, ok: got === "1" };
}

async function stopAll(running: Set<DemoPlatform>): Promise<void> {
  const platforms = [...running];
  running.clear();
  await Promise.all(platforms.map((platform) => platform.stop()));
}

function instructions({ platform: { url }, webhook }: Demonstration, place: string): string {
  const { path: route, authUsername, authPassword, signatureSecret } = webhook;
  const key = quoted(path.join(place, `${demoKeyid}.private.pem`));
  return [
    "",
    `listening on ${url} (Ctrl-C ends it)`,
    "",
    "Send a payout by hand, from another terminal in this folder; --help shows the ways to spoil it:",
    `  npm run countersign -- payout --url ${url}${payoutPath} --key ${key} --keyid ${demoKeyid}`,
    "Send a webhook by hand, with the credentials of this start:",
    `  npm run countersign -- webhook --url ${url}${route} --allow-http \\`,
    `    --username ${authUsername} \\`,
    `    --password ${authPassword} \\`,
    `    --secret ${signatureSecret}`,
    "See what was paid, and what the webhooks have changed:",
    `  curl ${url}/inspect/payouts`,
    `  curl ${url}/inspect/state`,
    `  curl ${url}/inspect/events`,
    "Log and database:",
    `  ${path.join(place, "platform.log")}`,
    `  ${path.join(place, "platform.db")}`,
  ].join("\n");
}

function quoted(file: string): string {
  return /^[\w./\\:-]+$/.test(file) ? file : `"${file}"`;
}
