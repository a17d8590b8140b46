import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "@jest/globals";
import { mysqlUrl, postgresUrl, redisUrl } from "../servers/engines.ts";
import { mariadbGreets } from "../servers/mariadb-server.mjs";
import { endProcess } from "../servers/private-process.mjs";
import { postgresAnswers } from "../servers/postgres-server.mjs";
import { redisAnswers } from "../servers/redis-server.mjs";
import { mariadbPrograms, postgresFolder, redisServer } from "../servers/server-binaries.mjs";

interface Urls {
  readonly postgres: string;
  readonly redis: string;
  readonly mysql: string;
}

const started: ChildProcess[] = [];

afterEach(() => Promise.all(started.splice(0).map((child) => endProcess(child, "SIGKILL"))));

/** Starts with-servers.mjs on a script of Node that says one line of JSON. */
function start(script: string) {
  const file = fileURLToPath(new URL("with-servers.mjs", import.meta.url));
  const child = spawn(process.execPath, [file, process.execPath, "--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
    cwd: fileURLToPath(new URL("../../..", import.meta.url)),
  });
  started.push(child);
  return {
    child,
    said: once(child.stdout, "data").then(([line]) => JSON.parse(String(line)) as unknown),
    ended: once(child, "exit").then(([code]) => code as number | null),
  };
}

function addressOf(url: string) {
  const { hostname: host, port } = new URL(url);
  return { host, port: Number(port), timeoutMs: 500 };
}

async function answering({ postgres, redis, mysql }: Urls): Promise<unknown> {
  const user = "postgres";
  return Promise.all([
    postgresAnswers({ ...addressOf(postgres), user, database: user }),
    redisAnswers(addressOf(redis)),
    mariadbGreets(addressOf(mysql)),
  ]);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const urls = "postgres: process.env.DATABASE_URL, redis: process.env.REDIS_URL, mysql: process.env.MYSQL_URL";
const programs = [postgresFolder(), redisServer(), mariadbPrograms().server];
const describeHere = programs.includes(undefined) ? describe.skip : describe;

describeHere("with-servers.mjs", () => {
  test("gives the command servers that were never used, ends them after it, and ends as it did", async () => {
    const run = start(
      `import { createClient } from "redis";
       import pg from "pg";
       const redis = createClient({ url: process.env.REDIS_URL });
       const postgres = new pg.Client({ connectionString: process.env.DATABASE_URL });
       await Promise.all([redis.connect(), postgres.connect()]);
       const { rowCount: schemas } = await postgres.query("SELECT FROM pg_namespace WHERE nspname LIKE 'cs\\\\_%'");
       const scripts = /number_of_cached_scripts:(\\d+)/.exec(await redis.info("memory"))[1];
       console.log(JSON.stringify({ ${urls}, keys: await redis.dbSize(), scripts, schemas }));
       await Promise.all([redis.quit(), postgres.end()]);
       process.exitCode = 7;`,
    );
    const said = (await run.said) as Urls;
    expect(said).toMatchObject({ keys: 0, scripts: "0", schemas: 0 });
    expect([said.postgres, said.redis]).not.toContain(postgresUrl);
    expect([said.postgres, said.redis]).not.toContain(redisUrl);
    expect(said.mysql).not.toBe(mysqlUrl);
    expect(await run.ended).toBe(7);
    expect(await answering(said)).toEqual([false, false, false]);
  });

  test("hands a signal on, and leaves neither command nor server behind", async () => {
    const waiting = `console.log(JSON.stringify({ pid: process.pid, ${urls} })); setInterval(() => {}, 1_000);`;
    const run = start(waiting);
    const said = (await run.said) as Urls & { pid: number };
    expect(await answering(said)).toEqual([true, true, true]);
    run.child.kill("SIGTERM");
    expect(await run.ended).toBe(1);
    expect(isAlive(said.pid)).toBe(false);
    expect(await answering(said)).toEqual([false, false, false]);
  });
});
