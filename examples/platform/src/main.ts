import { pinoLog } from "@countersign/observe/log";
import { readSettings, SettingError, settingWarnings, type Settings } from "@countersign/example-settings";
import { onceSignalled } from "@countersign/example-settings/signals";
import { pino } from "pino";
import { startPlatform, type Platform } from "./platform.ts";

async function main(): Promise<void> {
  try {
    const settings = readSettings(process.env);
    // The log goes to stderr: stdout says where the platform listens, and nothing else.
    const logger = pino({ level: settings.logLevel }, pino.destination({ fd: 2, sync: true }));
    pinoLog(logger);
    for (const text of settingWarnings(settings)) logger.warn(text);
    const platform = await startPlatform(settings, { logger });
    onceSignalled((reason) => {
      logger.info({ reason }, "shutting down");
      // oxlint-disable-next-line promise/prefer-await-to-then -- the exit code is the result
      platform.close().then(
        () => process.exit(0),
        (error: unknown) => {
          logger.error({ err: error }, "forced shutdown");
          process.exit(1);
        },
      );
    });
    process.stdout.write(announcement(platform, settings));
  } catch (error) {
    if (!(error instanceof SettingError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}

// A path that was set is known to whoever set it, and a secret to everybody else.
function announcement({ url, inspectorUrl }: Platform, { webhook }: Settings): string {
  const webhooks = webhook?.isPathGenerated === true ? `webhooks at ${url}${webhook.path}\n` : "";
  const inspector = inspectorUrl === undefined ? "" : `inspector at ${inspectorUrl}\n`;
  return `${webhooks}${inspector}listening on ${url}\n`;
}

void main();
