import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import path from "node:path";
import { assertFreePort, type Environment, parsePort, SettingError } from "@countersign/example-settings";
import { z } from "zod";
import { listedIp, runCases, runPaidKeyAgain, type CaseResult } from "./cases.ts";
import { lastingFolder, temporaryFolder } from "./folder.ts";
import { startDemoPages, type DemoPages } from "./pages.ts";
import { demoKeyid, prepareDemo, type DemoSetup } from "./setup.ts";
import { startDemoService, type DemoService } from "./service.ts";
import { DemoStartError, startDemoPlatform, type DemoPlatform } from "./platform.ts";
import { runRotation } from "./rotation.ts";
import { runSingleMiddlewares, startSingleMiddlewares } from "./single-middlewares.ts";
import { printedTable, type ResultTable } from "./table.ts";
import { runWebhookCases, type WebhookTarget } from "./webhook-cases.ts";
import { missEvent, runAfterRestart } from "./webhook-restart.ts";
import { onceSignalled } from "@countersign/example-settings/signals";

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
    console.error(`npm start: expected no argument, --once or --help,\ngot ${JSON.stringify(unknown)}`);
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
  const { platform, setup } = await demonstrate(running, place, String(port));
  const shown = path.relative(cwd, place) || ".";
  const keyFile = path.join(shown, `${demoKeyid}.private.pem`);
  const pages = await startDemoPages({
    setup,
    platform,
    payoutUrl: platform.url + payoutPath,
    keyFile,
  });
  try {
    console.log(instructions({ platform, pages, keyFile, place: shown }));
    await platform.ended;
  } finally {
    await pages.close();
  }
}

/** What the demo works with and what it leaves running. */
interface Demonstration {
  readonly platform: DemoPlatform;
  readonly setup: DemoSetup;
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
    const table = printedTable();
    const platform = await showCases({ setup, service, start, port }, table);
    await showSingleMiddlewares(setup, running, table);
    if (!table.end()) process.exitCode = 1;
    return { platform, setup };
  } finally {
    await service.close();
  }
}

/** The same checks as middlewares of an app, in a process that ends afterwards. */
async function showSingleMiddlewares(
  setup: DemoSetup,
  running: Set<DemoPlatform>,
  { add: report, say }: ResultTable,
): Promise<void> {
  say("the single middlewares, each mounted by itself");
  const folder = temporaryFolder("countersign-middlewares-");
  try {
    const databaseFile = path.join(folder, "platform.db");
    const platform = await startSingleMiddlewares(setup, databaseFile);
    running.add(platform);
    await runSingleMiddlewares(setup, { url: platform.url, databaseFile }, report);
    running.delete(platform);
    await platform.stop();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Stage {
  readonly setup: DemoSetup;
  readonly service: DemoService;
  readonly start: (changes: Environment) => Promise<DemoPlatform>;
  readonly port: string;
}

/** Resolves with the platform that is left running. */
async function showCases(
  { setup, service, start, port }: Stage,
  { add: report, say }: ResultTable,
): Promise<DemoPlatform> {
  say("starting two platforms, one behind a proxy …");
  const first = await start({ PORT: port });
  const strict = await start({
    PORT: "0",
    TRUST_PROXY: "127.0.0.1",
    PAYOUT_ALLOWED_IPS: listedIp,
    WEBHOOK_ALLOW_HTTP: undefined,
  });
  const target = { url: first.url + payoutPath, proxiedUrl: strict.url + payoutPath, key: setup.key };
  say("payouts, as the lending service sends them");
  const goodKey = `payout-${randomUUID()}.funding-1.business-1`;
  await runCases(target, goodKey, report);
  say("the service changes its key while payouts arrive");
  await runRotation(target, setup.keysFile, report);
  say("webhooks (404: refused, as an unknown path)");
  const exchange = await runWebhookCases(service, webhookTarget(setup, first.url, strict.url), report);
  say("kill -9, then a new start on the same database");
  await Promise.all([first.kill(), strict.stop()]);
  const missedEventId = await missEvent(exchange);
  // Where the service knows it.
  const platform = await start({ PORT: new URL(first.url).port, INSPECTOR_PORT: "0" });
  report(await runPaidKeyAgain(target, goodKey));
  report(await countRows(platform.url, goodKey));
  await runAfterRestart(exchange, missedEventId, platform.url, report);
  return platform;
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

interface Shown {
  readonly platform: DemoPlatform;
  readonly pages: DemoPages;
  readonly keyFile: string;
  readonly place: string;
}

// At most 60 columns, as long as the folder's path is no longer than usual.
function instructions({ platform: { url }, pages, keyFile, place }: Shown): string {
  return [
    "",
    `listening on ${url} (Ctrl-C ends it)`,
    "",
    "Sandbox, which sends payouts and webhooks:",
    `  ${pages.sandboxUrl}`,
    "Inspector, which shows each request and what is wrong:",
    `  ${pages.inspectorUrl}`,
    "",
    "Three things to try:",
    "1. In the sandbox send a payout twice: 200, then 409.",
    "2. Send one that is spoilt, and read in the inspector what",
    "   its sender has to change.",
    "3. Send one by hand, from another terminal in this folder:",
    "   npm run countersign -- payout \\",
    `     --url ${url}${payoutPath} \\`,
    `     --key ${quoted(keyFile)} --keyid ${demoKeyid}`,
    "",
    `Log and database are in ${place}`,
  ].join("\n");
}

function quoted(file: string): string {
  return /^[\w./\\:-]+$/.test(file) ? file : `"${file}"`;
}
