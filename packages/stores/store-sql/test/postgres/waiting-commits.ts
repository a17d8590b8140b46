import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { startPrivatePostgres } from "@countersign/test-support/servers/private-postgres.ts";
import { Client } from "pg";

/** A wait of a session for the synchronous standby. */
interface Wait {
  readonly pid: number;
  /** When its statement began: the next wait of the session has a later one. */
  readonly since: string;
}

export interface StandbyServer {
  readonly url: string;
  /** From here on commits wait for a standby that is not there. */
  loseStandby(): Promise<void>;
  /** From here on no commit waits, and those that wait are answered. */
  leaveStandby(): Promise<void>;
  /** Cancels the wait of the next commit, as an operator or a driver does; that commit is answered with success. */
  cancelWait(): Promise<Wait>;
  /** Resolves at the session's next wait. */
  nextWait(of: Wait): Promise<Wait>;
  terminate(wait: Wait): Promise<void>;
  /** How many sessions wait. */
  waiting(): Promise<number>;
  close(): Promise<void>;
}

/** A server that has a synchronous standby, or not, as a test says. Undefined where none is installed. */
export async function startStandbyServer(): Promise<StandbyServer | undefined> {
  const server = await startPrivatePostgres();
  if (server === undefined) return undefined;
  const { url } = server;
  const admin = await connected(url, "-c synchronous_commit=local");
  const waits = async (after?: Wait): Promise<readonly Wait[]> => {
    const text = `SELECT pid, query_start::text AS since FROM pg_stat_activity
      WHERE wait_event = 'SyncRep' AND ($1::int IS NULL OR pid = $1 AND query_start > $2::timestamptz)`;
    const { rows } = await admin.query<Wait>(text, [after?.pid ?? null, after?.since ?? null]);
    return rows;
  };
  const untilWait = async (after?: Wait): Promise<Wait> => {
    let found: Wait | undefined;
    await eventually(async () => {
      [found] = await waits(after);
      return found !== undefined;
    });
    if (found === undefined) throw new Error("no commit waits");
    return found;
  };
  const setStandby = async (name: string): Promise<void> => {
    await admin.query(`ALTER SYSTEM SET synchronous_standby_names = '${name}'`);
    await admin.query("SELECT pg_reload_conf()");
  };
  const cancel = async ({ pid }: Wait): Promise<void> => {
    await admin.query("SELECT pg_cancel_backend($1)", [pid]);
  };
  return {
    url,
    async loseStandby() {
      await setStandby("nobody");
      // The server begins to wait a little later.
      const probe = await connected(url);
      let wait: Wait | undefined;
      const commits = async (): Promise<boolean> => {
        await probe.query("SELECT pg_logical_emit_message(true, 'probe', '')");
        return wait !== undefined;
      };
      const probing = eventually(commits);
      wait = await untilWait();
      await cancel(wait);
      await probing;
      await probe.end();
    },
    async leaveStandby() {
      await setStandby("");
      await eventually(async () => (await waits()).length === 0);
    },
    async cancelWait() {
      const wait = await untilWait();
      await cancel(wait);
      return wait;
    },
    nextWait: untilWait,
    async terminate({ pid }) {
      await admin.query("SELECT pg_terminate_backend($1)", [pid]);
    },
    waiting: async () => (await waits()).length,
    async close() {
      await admin.end();
      await server.close();
    },
  };
}

async function connected(url: string, options?: string): Promise<Client> {
  const client = new Client({ connectionString: url, ...(options && { options }) });
  client.on("error", () => {});
  await client.connect();
  return client;
}
