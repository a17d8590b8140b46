import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { withDeadline } from "@countersign/guard";
import type { Logger } from "pino";
import { createApp } from "./app.ts";
import { practiceBankRail, type BankRail } from "./bank-rail.ts";
import { httpReporter, logReporter, type ConfirmationReporter } from "./confirmation.ts";
import { openStore, type PlatformDatabase } from "./database.ts";
import { createInFlight } from "./in-flight.ts";
import { createOutbox, type Outbox } from "./outbox.ts";
import { createPartyLedger, type PartyLedger } from "./party-ledger.ts";
import { createPayoutLedger, type PayoutLedger } from "./payout-ledger.ts";
import { startWorkers } from "./payout-workers.ts";
import { reasonOf, SettingError } from "./setting-error.ts";
import type { Settings } from "./settings.ts";

/** What replaces the practice parts in a real platform. */
export interface PlatformPorts {
  readonly logger: Logger;
  /** Default a bank for practice that moves nothing. */
  readonly rail?: BankRail | undefined;
  /** Default by `settings.confirmationUrl`: HTTP, or the log. */
  readonly reporter?: ConfirmationReporter | undefined;
}

/** A platform that serves. */
export interface Platform {
  /** `http://HOST:PORT` with the real port; `https:` with TLS_CERT. */
  readonly url: string;
  /**
   * Stops accepting, waits for the requests and tasks that run, closes the database. Rejects when that takes longer than
   * `timeoutMs`; connections are cut then, and what had not committed never happened.
   */
  close(timeoutMs: number): Promise<void>;
}

/** Starts everything. Throws a SettingError when the database or the address cannot be used. */
export async function startPlatform(settings: Settings, ports: PlatformPorts): Promise<Platform> {
  const { logger } = ports;
  const { database, stores } = openStore(settings.store);
  const { outbox, ledger, parties } = createLedgers(database);
  const rail = ports.rail ?? practiceBankRail();
  const reporter = ports.reporter ?? defaultReporter(settings, logger);
  const inFlight = createInFlight();
  const workers = startWorkers({ outbox, ledger, rail, reporter, logger });

  async function closeDatabase(): Promise<void> {
    await workers.stop();
    stores.close();
    // So that the database file alone is complete, for whoever copies it.
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    database.close();
  }

  let server: Server;
  try {
    const onAccepted = (): void => workers.wake();
    const app = createApp({ settings, stores, ledger, parties, inFlight, logger, onAccepted });
    server = await listen(createAppServer(app, settings), settings);
  } catch (error) {
    await closeDatabase();
    throw error;
  }
  return {
    url: urlOf(server, settings),
    async close(timeoutMs) {
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      const drained = inFlight.drain().then(() => server.closeIdleConnections());
      const late = (): Error => new Error(`requests or tasks still ran after ${timeoutMs} ms`);
      try {
        await withDeadline(Promise.all([drained, closed]).then(closeDatabase), timeoutMs, late);
      } finally {
        server.closeAllConnections();
      }
    },
  };
}

interface Ledgers {
  readonly outbox: Outbox;
  readonly ledger: PayoutLedger;
  readonly parties: PartyLedger;
}

function createLedgers(database: PlatformDatabase): Ledgers {
  try {
    const outbox = createOutbox(database);
    const ledger = createPayoutLedger(database, outbox, Date.now);
    return { outbox, ledger, parties: createPartyLedger(database) };
  } catch (error) {
    database.close();
    throw new SettingError("STORE_URL", `a database with the tables of the platform (${reasonOf(error)})`);
  }
}

function defaultReporter({ confirmationUrl }: Settings, logger: Logger): ConfirmationReporter {
  return confirmationUrl === undefined ? logReporter(logger) : httpReporter({ url: confirmationUrl });
}

function createAppServer(app: RequestListener, { tls }: Settings): Server {
  const timeouts = { requestTimeout: 15_000, headersTimeout: 10_000 };
  return tls === undefined ? createServer(timeouts, app) : createTlsServer({ ...timeouts, ...tls }, app);
}

function listen(server: Server, { host, port }: Settings): Promise<Server> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      reject(listenError(error, host, port));
    });
    server.listen({ host, port }, () => resolve(server));
  });
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): SettingError {
  if (error.code === "EADDRINUSE")
    return new SettingError("PORT", `a free port, ${port} is in use on ${host}`);
  if (error.code === "EACCES") return new SettingError("PORT", `a port that this user may open, not ${port}`);
  return new SettingError("HOST", `an address of this machine (${reasonOf(error)})`, host);
}

function urlOf(server: Server, { tls }: Settings): string {
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("the server listens on no port");
  const { address, family, port } = bound;
  return `${tls === undefined ? "http" : "https"}://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}
