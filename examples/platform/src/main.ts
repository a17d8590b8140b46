import { pino } from "pino";
import { logGuards } from "./guard-log.ts";
import { startPlatform, type Platform } from "./platform.ts";
import { SettingError } from "./setting-error.ts";
import { readSettings, type Settings } from "./settings.ts";
import { onceSignalled } from "./signals.ts";

const drainTimeoutMs = 10_000;

async function main(): Promise<void> {
  let settings: Settings;
  let platform: Platform;
  try {
    settings = readSettings(process.env);
    // The log goes to stderr: stdout says where the platform listens, and nothing else.
    const logger = pino({ level: settings.logLevel }, pino.destination({ fd: 2, sync: true }));
    logGuards(logger);
    warnOfOpenSettings(settings, (text) => logger.warn(text));
    platform = await startPlatform(settings, { logger });
    onceSignalled((reason) => {
      logger.info({ reason }, "shutting down");
      // oxlint-disable-next-line promise/prefer-await-to-then -- the exit code is the result
      platform.close(drainTimeoutMs).then(
        () => process.exit(0),
        (error: unknown) => {
          logger.error({ err: error }, "forced shutdown");
          process.exit(1);
        },
      );
    });
  } catch (error) {
    if (!(error instanceof SettingError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
    return;
  }
  process.stdout.write(announcement(platform.url, settings));
}

// A path that was set is known to whoever set it, and a secret to everybody else.
function announcement(url: string, { webhook }: Settings): string {
  const listening = `listening on ${url}\n`;
  return webhook?.isPathGenerated === true ? `webhooks at ${url}${webhook.path}\n${listening}` : listening;
}

function warnOfOpenSettings(settings: Settings, warn: (text: string) => void): void {
  const { businesses, store } = settings;
  if (businesses === undefined) warn("BUSINESSES is not set: payouts to unknown beneficiaries are accepted");
  if (store.kind === "memory") warn("STORE_URL is memory: a restart forgets which keys were paid");
  warnOfWebhooks(settings, warn);
}

function warnOfWebhooks({ webhook, tls, trustProxy }: Settings, warn: (text: string) => void): void {
  if (webhook === undefined) {
    warn("WEBHOOK_USERNAME, WEBHOOK_PASSWORD and WEBHOOK_SECRETS are not set: there is no webhook route");
    return;
  }
  if (webhook.isPathGenerated) warn("WEBHOOK_PATH is not set: the webhook URL changes at each start");
  if (webhook.allowHttp) warn("WEBHOOK_ALLOW_HTTP is 1: webhooks are accepted over plain http");
  else if (tls === undefined && trustProxy.length === 0) {
    warn(
      "every webhook will be refused as plain http: set TLS_CERT and TLS_KEY, or TRUST_PROXY for the proxy that ends TLS",
    );
  }
}

void main();
