import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { withDeadline } from "@countersign/core";
import { gracefulClose, type Drainable } from "@countersign/express";
import { listen, openKeys, type Settings } from "@countersign/example-settings";
import { keyUse } from "@countersign/http-signature-verify";
import type { Inspector } from "@countersign/inspector";
import type { Logger } from "pino";
import { createApp, type AppParts } from "./app.ts";
import { practiceBankRail, type BankRail } from "./workers/bank-rail.ts";
import { httpReporter, logReporter, type ConfirmationReporter } from "./workers/confirmation.ts";
import { startInspector } from "./inspector.ts";
import { openPostgresStorage } from "./engines/postgres/storage.ts";
import { openRedisStorage } from "./engines/redis.ts";
import { openSqliteStorage } from "./engines/sqlite.ts";
import type { PlatformStorage } from "./engines/storage.ts";
import { startWorkers } from "./workers/payout-workers.ts";

/** What replaces the practice parts in a real platform. */
export interface PlatformPorts {
  readonly logger: Logger;
  /** Default a bank for practice that moves nothing. */
  readonly rail?: BankRail | undefined;
  /** Default by `settings.confirmationUrl`: HTTP, or the log. */
  readonly reporter?: ConfirmationReporter | undefined;
  /** How long close() may take. Default 10,000. */
  readonly closeTimeoutMs?: number | undefined;
}

/** A platform that serves. */
export interface Platform {
  /** `http://HOST:PORT` with the real port; `https:` with TLS_CERT. */
  readonly url: string;
  /** The page of the inspector, where INSPECTOR_PORT is set. */
  readonly inspectorUrl: string | undefined;
  /**
   * Stops accepting, waits for the requests and tasks that run, closes the databases. Rejects when that takes longer than
   * `closeTimeoutMs`; connections are cut before, and what had not committed never happened.
   */
  close(): Promise<void>;
}

/** Starts everything. Throws a SettingError when a database or the address cannot be used. */
export async function startPlatform(settings: Settings, ports: PlatformPorts): Promise<Platform> {
  const { logger, closeTimeoutMs = 10_000 } = ports;
  const opened = await openKeys(settings.keys);
  let storage: PlatformStorage;
  try {
    storage = await openStorage(settings, logger);
  } catch (error) {
    opened.close();
    throw error;
  }
  const uses = keyUse();
  const inspectKeys = (): ReturnType<AppParts["inspectKeys"]> => ({
    accepted: opened.keyids(),
    used: uses.entries(),
  });
  const { stores, outbox, ledger, parties } = storage;
  const rail = ports.rail ?? practiceBankRail();
  const reporter = ports.reporter ?? defaultReporter(settings, logger);
  const endpoints: Drainable[] = [];
  let isClosing = false;
  const workers = startWorkers({ outbox, ledger, rail, reporter, logger });

  const late = (): Error => new Error(`requests or tasks still ran after ${closeTimeoutMs} ms`);

  async function closeStorage(): Promise<void> {
    opened.close();
    await workers.stop();
    await storage.close();
  }

  let closeServer: ReturnType<typeof gracefulClose>;
  let url: string;
  let inspector: Inspector | undefined;
  try {
    inspector = await startInspector({ settings, keys: opened.keys, stores });
    const onAccepted = (): void => workers.wake();
    const app = createApp({
      settings,
      keys: opened.keys,
      inspectKeys,
      stores,
      ledger,
      parties,
      endpoints,
      isClosing: () => isClosing,
      logger,
      onAccepted,
    });
    const server = createAppServer(app, settings);
    closeServer = gracefulClose(server, { endpoints, timeoutMs: closeTimeoutMs });
    url = urlOf(await listen(server, settings), settings);
  } catch (error) {
    uses.close();
    await inspector?.close();
    await closeStorage();
    throw error;
  }
  const end = async (): Promise<void> => {
    const { connections, keys, claims } = await closeServer();
    await closeStorage();
    if (connections + keys + claims > 0) throw late();
  };
  return {
    url,
    inspectorUrl: inspector?.pageUrl,
    async close() {
      isClosing = true;
      try {
        await withDeadline(end(), closeTimeoutMs, late);
      } finally {
        // Even where the rest was late.
        uses.close();
        await inspector?.close();
      }
    },
  };
}

function defaultReporter(settings: Settings, logger: Logger): ConfirmationReporter {
  const { confirmationUrl: url, confirmationApiKey: apiKey } = settings;
  return url === undefined ? logReporter(logger) : httpReporter({ url, apiKey });
}

function createAppServer(app: RequestListener, { tls }: Settings): Server {
  const timeouts = { requestTimeout: 15_000, headersTimeout: 10_000 };
  return tls === undefined ? createServer(timeouts, app) : createTlsServer({ ...timeouts, ...tls }, app);
}

function urlOf({ address, family, port }: AddressInfo, { tls }: Settings): string {
  return `${tls === undefined ? "http" : "https"}://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}

/** Connects and creates what is missing. Throws a SettingError that names the variable and shows no password. */
async function openStorage({ store }: Settings, logger: Logger): Promise<PlatformStorage> {
  if (store.kind === "postgres") return openPostgresStorage(store, logger);
  if (store.kind === "redis") return openRedisStorage(store, logger);
  return openSqliteStorage(store);
}
