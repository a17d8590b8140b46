import { type SqliteDatabase, createStores } from "@countersign/store-sql";
import {
  createInbox,
  TaskError,
  webhookEndpoint,
  type GeneratedEndpoint,
} from "countersign/webhooks";
import express, { type Express } from "express";

/** `mail` is a service of others; it sends a repeated `id` once. */
export interface Mail {
  send(
    to: string,
    id: string,
    signal: AbortSignal,
  ): Promise<{ status: number }>;
}

export function createApp(
  endpoint: GeneratedEndpoint,
  database: SqliteDatabase,
  mail: Mail,
) {
  const stores = createStores({ database });
  database.exec(
    `CREATE TABLE IF NOT EXISTS buyers
      (id TEXT PRIMARY KEY, status TEXT) STRICT`,
  );
  database.exec(
    "CREATE TABLE IF NOT EXISTS mails (id TEXT PRIMARY KEY) STRICT",
  );
  const setStatus = database.prepare(
    "INSERT OR REPLACE INTO buyers VALUES (?, ?)",
  );
  const addMail = database.prepare("INSERT INTO mails VALUES (?)");

  const inbox = createInbox({
    stores,
    fallback: "ignore",
    onDeadLetter: ({ event_id, error }) =>
      console.error("to be looked at:", event_id, error),
  });
  // Once: what it writes commits with the end of the event. An older event
  // changes nothing.
  inbox.on(
    "buyer.status_changed",
    ({ data }) => setStatus.run(data.buyer_id, data.new_status),
    {
      latestOnly: true,
    },
  );
  // At least once: after a crash the mail is asked for again, with the same
  // id.
  inbox.onAtLeastOnce(
    "seller.status_changed",
    async (event, { signal, commit }) => {
      const { status } = await mail.send(
        event.data.seller_id,
        event.event_id,
        signal,
      );
      if (status === 429)
        throw new TaskError("too many mails", { retryInMs: 60_000 });
      if (status === 404)
        throw new TaskError("no such seller", { isFinal: true });
      if (status >= 500)
        throw new Error(`the mail service answered ${status}`);
      await commit(() => addMail.run(event.event_id));
    },
  );

  const { path, username, password, secret } = endpoint;
  const app: Express = express();
  app.use(
    path,
    webhookEndpoint({
      basicAuth: { username, password },
      hmac: { secret },
      handler: inbox,
    }),
  );
  // What an earlier process has left is worked on before the first webhook
  // comes.
  inbox.start();
  return { app, inbox, stores };
}
