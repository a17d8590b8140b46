import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { withDeadline } from "@countersign/core";
import { gracefulClose, type Drainable } from "@countersign/express";
import { listen, openKeys, type Settings } from "@countersign/example-settings";
import { keyUse } from "@countersign/http-signature-verify";
import type { Logger } from "pino";
import { createApp } from "./app.ts";
import { practiceBankRail, type BankRail } from "./bank-rail.ts";
import { startInspector } from "./inspector.ts";
import { openPostgresStorage } from "./engines/postgres/storage.ts";
import { openRedisStorage } from "./engines/redis.ts";
import { openSqliteStorage } from "./engines/sqlite.ts";
import type { PlatformStorage } from "./engines/storage.ts";
import { partyLedgerOn } from "./ledgers/parties.ts";
import { openPayouts } from "./transfers.ts";

/** What replaces the practice parts in a real platform. */
export interface PlatformPorts {
  readonly logger: Logger;
  /** Default a bank for practice that moves nothing. */
  readonly rail?: BankRail | undefined;
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
  const { logger, closeTimeoutMs = 10_000, rail = practiceBankRail() } = ports;
  // What was opened, to be closed in the reverse order.
  const opened: (() => unknown)[] = [];
  async function closeAll(): Promise<void> {
    for (let close = opened.pop(); close !== undefined; close = opened.pop()) {
      // oxlint-disable-next-line no-await-in-loop -- each needs those that were opened before
      await close();
    }
  }

  try {
    const uses = keyUse();
    opened.push(() => uses.close());
    const keySource = await openKeys(settings.keys);
    const { keys } = keySource;
    opened.push(() => keySource.close());
    const storage = await openStorage(settings, logger);
    opened.push(() => storage.close());
    const inspector = await startInspector({ settings, keys, storage });
    opened.push(() => inspector?.close());
    const { ledger, outcomes, workers } = await openPayouts({ storage, rail, settings, logger });
    const endpoints: Drainable[] = [...workers];
    let isClosing = false;
    const app = createApp({
      settings,
      keys,
      inspectKeys: () => ({ accepted: keySource.keyids(), used: uses.entries() }),
      stores: storage.stores,
      ledger,
      outcomes,
      parties: partyLedgerOn(storage.database),
      endpoints,
      isClosing: () => isClosing,
      logger,
    });
    const server = createAppServer(app, settings);
    const closeServer = gracefulClose(server, { endpoints, timeoutMs: closeTimeoutMs });
    const url = urlOf(await listen(server, settings), settings);
    for (const worker of workers) worker.start();
    const late = (): Error => new Error(`requests or tasks still ran after ${closeTimeoutMs} ms`);
    const end = async (): Promise<void> => {
      const { connections, keys: open, claims } = await closeServer();
      await closeAll();
      if (connections + open + claims > 0) throw late();
    };
    return {
      url,
      inspectorUrl: inspector?.pageUrl,
      close() {
        isClosing = true;
        return withDeadline(end(), closeTimeoutMs, late);
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
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
