import { readFileSync } from "node:fs";
import type { RequestListener, Server } from "node:http";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { sqliteMigration, sqliteSchemaVersion } from "@countersign/store-sql";
import Database from "libsql";
import { causeOf, clockFinding, findingKinds, findingsOf } from "../src/doctor/findings.ts";
import { redisDoubts } from "../src/operator/redis-store.ts";
import { close, listen } from "@countersign/test-support/servers/http-client.ts";
import { run, type Run, spawnCli } from "./cli-bench.ts";
import { folder, imports, moduleOf, mounted, type Report } from "./doctor-bench.ts";
import { engines, hold, onEngines, runOn } from "./operator-bench.ts";

function reportOf({ out }: Run): Report {
  return JSON.parse(out) as Report;
}

function idsOf(ended: Run): string[] {
  return reportOf(ended).findings.map(({ id }) => id);
}

/** An Express app; the rest of its faults are tried one by one in doctor-app.long.test.ts. */
function appFile({ trust, parser }: { trust: string; parser: string }): string {
  const hooks = 'app.use("/hooks", webhook());';
  const goesOn = 'console.log("the app writes to stdout"); setInterval(() => {}, 1000);';
  return moduleOf(`${imports}app.set("trust proxy", ${trust});\n${parser}${hooks}\n${mounted}${goesOn}`);
}

// A busy machine takes longer than the default of ten seconds to load an app.
const doctorOf = (file: string): string[] => ["doctor", "--app", file, "--timeout", "60000"];

describe("countersign doctor --app", () => {
  test("finds no error in an app that is right, and ends though the app would not", async () => {
    const file = appFile({ trust: '["192.0.2.7"]', parser: "" });
    const ended = await spawnCli([...doctorOf(file), "--json"], {
      env: { NODE_ENV: "test" },
      cwd: folder,
    });
    expect(ended).toMatchObject({ code: 0, err: "" });
    expect(reportOf(ended)).toMatchObject({ errors: 0, warnings: 0 });
    expect(new Set(idsOf(ended))).toEqual(new Set(["memory-store"]));
  });

  test("tells each fault, what to do and what it has looked at, and no secret", async () => {
    const file = appFile({ trust: "true", parser: "app.use(express.json());" });
    const env = { NODE_ENV: "production" };
    const { code, out, err } = await spawnCli(doctorOf(file), { env, cwd: folder });
    expect({ code, err }).toEqual({ code: 1, err: "" });
    for (const id of ["parser-before-guard", "trust-proxy-everybody", "memory-store"] as const) {
      expect(out).toMatch(
        new RegExp(
          `^error ${id}\n {2}app \\S+: .*\n {2}Cause: ${causeOf(id).slice(0, 20)}.*\n {2}To do: ${findingKinds[id][1].slice(0, 20)}`,
          "m",
        ),
      );
    }
    const [, checked, end] = out.split(/^looked at\n {2}(app .*)\nnot looked at\n/m);
    expect(checked).toMatch(/ \(Express; .*payoutEndpoint.*\): .*, order of its middlewares, trust proxy$/);
    expect(end).toMatch(/^ {2}a running endpoint: no --url\n {2}a store: .*STORE_URL.*\n5 errors\n$/);
    expect(out).not.toContain("https://");
    expect(out).not.toContain("test-");
  });
});

describe("countersign doctor --url", () => {
  let server: Server;
  let listener: RequestListener;
  let url = "";
  beforeEach(async () => {
    const listening = await listen((req, res) => listener(req, res));
    server = listening.server;
    url = `http://127.0.0.1:${listening.port}/pay`;
  });
  afterEach(() => close(server));

  const answers = (text: number, json = text, body = "{}"): RequestListener => {
    return (req, res) => {
      res.writeHead(req.headers["content-type"] === "application/json" ? json : text).end(body);
    };
  };

  test.each<[string, RequestListener, readonly string[]]>([
    ["refuses both", answers(401), []],
    ["hides", answers(404), ["url-not-found"]],
    ["takes what has no signature", answers(200), ["url-unguarded"]],
    ["validates before it refuses", answers(422), ["url-unguarded"]],
    ["parses before it refuses", answers(401, 400), ["parser-in-front"]],
    ["fails", answers(500), ["url-error"]],
    ["fails by its proxies", answers(500, 500, '{"code":"trust-proxy-unsafe"}'), ["trust-proxy-everybody"]],
    ["fails by its parser", answers(500, 500, '{"code":"body-already-consumed"}'), ["parser-before-guard"]],
    ["goes elsewhere", (_req, res) => res.writeHead(302, { location: "/" }).end(), ["url-unguarded"]],
    ["goes away", (req) => req.socket.destroy(), ["url-unreachable"]],
    [
      "has another time",
      (_req, res) => res.writeHead(401, { date: "Thu, 01 Jan 2026 00:00:00 GMT" }).end(),
      ["clock-off"],
    ],
    ["writes a code that steers", answers(503, 503, '{"code":"\\u001b[2J"}'), ["url-error"]],
  ])("an endpoint that %s", async (_name, behaviour, ids) => {
    listener = behaviour;
    const ended = await run(["doctor", "--url", url, "--json"]);
    expect(idsOf(ended)).toEqual(ids);
    expect(ended.code).toBe(ids.every((id) => id === "url-not-found" || id === "parser-in-front") ? 0 : 1);
    expect(ended.out).not.toContain("\u001B");
    const people = await run(["doctor", "--url", url]);
    expect(people.out).not.toContain("\u001B");
  });

  test("says what the code of a failing endpoint asks for, without the network", async () => {
    listener = answers(503, 503, '{"code":"key-store-unavailable"}');
    const { out } = await run(["doctor", "--url", url], { columns: 80 });
    expect(out).toMatch(/^error url-error$[^]*\n {2}key-store-unavailable: \S+/m);
    expect(out).toMatch(
      /\nlooked at\n {2}http:\S+: answers [^:]*, clock\nnot looked at\n {2}an app: no --app\n {2}a store: /,
    );
    for (const line of out.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
  });

  test("an endpoint that is silent, in time", async () => {
    listener = () => {};
    const { code, out } = await run(["doctor", "--url", url, "--timeout", "300"]);
    expect({ code, out }).toMatchObject({ code: 1, out: expect.stringMatching(/did not answer in time/) });
    expect(out).toMatch(/\nnot looked at\n {2}an app: no --app\n {2}answers of \S+: there are none\n/);
  });

  test("sends what no handler takes for a payout, and no credentials", async () => {
    const seen: string[] = [];
    listener = (req, res) => {
      req.on("data", (chunk: Buffer) => seen.push(`${req.method} ${chunk.toString()}`));
      req.on("end", () => res.writeHead(req.headers.authorization === undefined ? 401 : 500).end());
    };
    expect((await run(["doctor", "--url", url])).out).toMatch(/\nnothing found\n$/);
    expect(seen).toEqual(["POST countersign doctor", "POST {"]);
  });
});

onEngines(engines, "countersign doctor", (bench, engine) => {
  test("reads the settings of the engine, and finds nothing wrong with the tables", async () => {
    const ended = await runOn(bench, "doctor --json");
    const ids = idsOf(ended);
    // What the tests' own server is set to is not the subject.
    const settings = ["postgres-fsync", "postgres-full-page-writes", "postgres-synchronous-commit"];
    settings.push("mysql-flush", "mysql-binlog");
    const others = ["redis-evicts", "redis-forgets", "redis-appendfsync", "redis-old"];
    expect(ids.filter((id) => ![...settings, ...others].includes(id))).toEqual([]);
    expect(reportOf(ended).subjects).toEqual([expect.stringMatching(/\((?:tables|prefix) /)]);
  });

  test("counts the keys that wait, where that needs no walk over all of them", async () => {
    await hold(bench, "key");
    const { arrayContaining } = engine.name === "Redis" ? expect.not : expect;
    expect(idsOf(await runOn(bench, "doctor --json"))).toEqual(arrayContaining(["keys-held"]));
  });
});

describe("countersign doctor on SQLite", () => {
  test("knows a journal that is no WAL, and tables of another version", async () => {
    const url = `sqlite:${join(folder, "settings.db")}`;
    const database = new Database(join(folder, "settings.db"));
    try {
      database.exec(sqliteMigration());
      expect(idsOf(await run(["doctor", "--store-url", url, "--json"]))).toEqual(["sqlite-journal"]);
      database.exec("PRAGMA journal_mode = WAL; UPDATE countersign_schema SET version = 0");
      expect(idsOf(await run(["doctor", "--store-url", url, "--json"]))).toEqual(["migration-pending"]);
      database.exec("UPDATE countersign_schema SET version = 99");
      expect(idsOf(await run(["doctor", "--store-url", url, "--json"]))).toEqual(["tables-newer"]);
      database.exec(
        `ALTER TABLE countersign_schema ADD COLUMN oldest INTEGER DEFAULT ${sqliteSchemaVersion}`,
      );
      expect(idsOf(await run(["doctor", "--store-url", url, "--json"]))).toEqual([]);
    } finally {
      database.close();
    }
  });

  test("knows that there are no tables, and makes none", async () => {
    const file = join(folder, "empty.db");
    const database = new Database(file);
    database.exec("PRAGMA journal_mode = WAL; CREATE TABLE of_others (id INTEGER)");
    const ended = await run(["doctor", "--store-url", `sqlite:${file}`, "--json"]);
    expect({ code: ended.code, ids: idsOf(ended) }).toEqual({ code: 1, ids: ["tables-missing"] });
    expect(database.prepare("SELECT count(*) AS tables FROM sqlite_schema").get()).toMatchObject({
      tables: 1,
    });
    database.close();
  });
});

test.each(["postgres", "mysql"])("a %s server that is not there is a finding", async (scheme) => {
  const url = `${scheme}://user:test-password@127.0.0.1:1/db`;
  const ended = await run(["doctor", "--store-url", url, "--json"]);
  expect({ code: ended.code, ids: idsOf(ended) }).toEqual({ code: 1, ids: ["store-unreachable"] });
  expect(ended.out).not.toContain("test-password");
});

describe("redisDoubts", () => {
  const good = ["redis_version:7.2.4", "maxmemory_policy:noeviction", "aof_enabled:1", "role:master"];
  const answering = (info: readonly string[], appendfsync: unknown) => async (command?: string) => {
    if (command === "INFO") return info.join("\r\n");
    if (appendfsync instanceof Error) throw appendfsync;
    return ["appendfsync", appendfsync];
  };

  test.each<[string, string, unknown, readonly string[]]>([
    ["nothing", "", "always", []],
    ["eviction", "maxmemory_policy:allkeys-lru", "always", ["redis-evicts"]],
    ["no file", "aof_enabled:0", "everysec", ["redis-forgets"]],
    ["a replica", "role:slave", "always", ["redis-replica"]],
    ["an old server", "redis_version:6.0.9", "always", ["redis-old"]],
    ["seconds", "", "everysec", ["redis-appendfsync"]],
    ["CONFIG that is refused", "", new Error("NOPERM"), []],
  ])("knows %s", async (_name, line, appendfsync, ids) => {
    const [name = ""] = line.split(":");
    const info = line === "" ? good : [...good.filter((one) => !one.startsWith(`${name}:`)), line];
    const doubts = await redisDoubts(answering(info, appendfsync));
    expect(doubts.map(([id]) => id)).toEqual(ids);
  });

  test("knows INFO that is refused", async () => {
    const doubts = await redisDoubts(() => Promise.reject(new Error("NOPERM")));
    expect(doubts.map(([id]) => id)).toEqual(["redis-unreadable"]);
  });
});

describe("clockFinding", () => {
  test.each<[string, number, RegExp | undefined]>([
    ["between question and answer", 1_000_500, undefined],
    ["a little behind", 996_000, undefined],
    ["far behind", 940_000, /60 s behind/],
    ["far ahead", 1_061_000, /60 s ahead of/],
    ["not a time", Number.NaN, undefined],
  ])("of a clock that is %s", (_name, theirsMs, message) => {
    const clock = { theirsMs, sentMs: 1_000_000, receivedMs: 1_001_000 };
    const [finding] = clockFinding(findingsOf("server"), clock);
    if (message === undefined) expect(finding).toBeUndefined();
    else expect(finding).toMatchObject({ id: "clock-off", message: expect.stringMatching(message) });
  });
});

describe("the page of findings", () => {
  const page = readFileSync(new URL("../../../../site/pages/guide/doctor.md", import.meta.url), "utf8");

  test("has a section with severity and remedy of each finding, and of nothing else", () => {
    const sections = [...page.matchAll(/^### (.+)\n\n(\w+)\. (.+)$/gm)];
    expect(page.match(/^### /gm)).toHaveLength(sections.length);
    expect(
      Object.fromEntries(sections.map(([, id, severity, remedy]) => [id, [severity?.toLowerCase(), remedy]])),
    ).toEqual(findingKinds);
  });

  // test/docs compares them with the page.
  test("has a cause of each finding whose message does not say it", () => {
    const ids = Object.keys(findingKinds) as (keyof typeof findingKinds)[];
    const said = ids.filter((id) => causeOf(id) === "");
    expect(said).toEqual([
      "credentials-empty",
      "body-unsigned",
      "nonce-missing",
      "key-expired",
      "key-revoked",
      "key-not-yet-valid",
      "store-unreachable",
      "tables-newer",
      "postgres-standby",
      "postgres-other",
      "postgres-old",
      "mysql-other",
      "mysql-old",
      "mysql-read-only",
      "redis-replica",
      "redis-old",
      "queue-paused",
    ]);
    for (const id of ids.filter((some) => !said.includes(some))) expect(causeOf(id)).toMatch(/^.{15,}\.$/);
  });
});
