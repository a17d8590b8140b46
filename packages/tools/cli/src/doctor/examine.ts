import type { QueueSummary } from "@countersign/idempotency/work";
import { CommandError, UsageError, type CommandIo, type Switches, type Texts } from "../command-io.ts";
import { parseTimeout } from "../input.ts";
import { inspectStore, withOperatorStore } from "../operator/operator-store.ts";
import { undecidedKeys } from "../operator/records.ts";
import type { OperatorWork } from "../operator/store.ts";
import { readTarget, type EngineName, type StoreFlags, type StoreTarget } from "../operator/store-target.ts";
import { lateMsOf } from "../operator/work.ts";
import { countOf, decisionText, lateText } from "../operator/work-report.ts";
import { printable } from "../output.ts";
import { appFindings } from "./app-findings.ts";
import { askApp, type AppFacts } from "./ask-app.ts";
import { clockFinding, doubtsOf, findingsOf, type Doubt, type Finding, type Row } from "./findings.ts";
import { assertProbe, urlFindings } from "./probe-url.ts";

export interface ExamineFlags extends StoreFlags, Texts<"app" | "url">, Switches<"allowHttp"> {
  readonly timeout: string;
}

export interface Diagnosis {
  /** What was looked at, and for what. */
  readonly subjects: readonly { readonly shown: string; readonly checked: readonly string[] }[];
  /** What was not looked at. */
  readonly missed: readonly { readonly what: string; readonly why: string }[];
  readonly findings: readonly Finding[];
}

export async function examine(flags: ExamineFlags, io: CommandIo): Promise<Diagnosis> {
  const { app, url, allowHttp, storeUrl, storeModule } = flags;
  const timeoutMs = parseTimeout(flags.timeout);
  const target = storeUrl === undefined && storeModule === undefined ? undefined : readTarget(flags);
  if (url !== undefined) assertProbe(url, allowHttp);
  if (app === undefined && url === undefined && target === undefined) {
    throw new UsageError("nothing to look at: give --app, --url, --store-url or --store-module");
  }
  const examined = [
    app === undefined ? leftOut("an app", "no --app") : await examineApp(app, timeoutMs, io.clock()),
    url === undefined ? leftOut("a running endpoint", "no --url") : await examineUrl(url, timeoutMs),
    target === undefined
      ? leftOut("a store", "no --store-url, STORE_URL or --store-module")
      : await examineStore(target),
  ];
  return {
    subjects: examined.flatMap(({ subjects }) => subjects),
    missed: examined.flatMap(({ missed }) => missed),
    findings: examined.flatMap(({ findings }) => findings),
  };
}

function leftOut(what: string, why: string): Diagnosis {
  return { subjects: [], missed: [{ what, why }], findings: [] };
}

async function examineApp(app: string, timeoutMs: number, now: number): Promise<Diagnosis> {
  const facts = await askApp(app, timeoutMs);
  const names = [...new Set(facts.built.map(({ factory }) => factory))];
  const kind = facts.kind === "unknown" ? "" : `${facts.kind}; `;
  const name = `app ${printable(app)}`;
  const isProduction = process.env["NODE_ENV"] === "production";
  return {
    subjects: [
      {
        shown: `${name} (${kind}${names.length === 0 ? "no check" : printable(names.join(", "))})`,
        checked: ["options of its checks and stores", ...checkedOf[facts.kind]],
      },
    ],
    missed: missedRows.flatMap(([isMissed, what, why]) => (isMissed(facts) ? [{ what, why }] : [])),
    findings: appFindings(name, facts, { now, isProduction }),
  };
}

const checkedOf: Readonly<Record<AppFacts["kind"], readonly string[]>> = {
  Express: ["order of its middlewares", "trust proxy"],
  Fastify: ["steps of its hooks", "whether trustProxy trusts everybody"],
  unknown: [],
};

type MissedRow = readonly [isMissed: (app: AppFacts) => boolean, what: string, why: string];

const missedRows: readonly MissedRow[] = [
  [({ fault }) => fault !== undefined, "what the app builds after its fault", "loading it failed"],
  [
    ({ kind, fault }) => kind === "unknown" && fault === undefined,
    "order of middlewares, and trust proxy",
    "the module exports no Express or Fastify app",
  ],
  [
    ({ kind }) => kind === "Fastify",
    "what reads the body at onRequest, and other values of trustProxy",
    "Fastify does not show them; --url finds a parser",
  ],
  [
    ({ built }) => built.some(({ facts }) => Array.isArray(facts["keys"]) && facts["keys"].length === 0),
    "keys that a function or a KeyStore finds",
    "they are looked up with a request; see countersign keys check",
  ],
];

async function examineUrl(url: string, timeoutMs: number): Promise<Diagnosis> {
  const findings = await urlFindings(url, timeoutMs);
  const shown = printable(url);
  const isSilent = findings.some(({ id }) => id === "url-unreachable");
  return {
    subjects: [{ shown, checked: isSilent ? [] : ["answers to a text and to broken JSON", "clock"] }],
    missed: isSilent ? [{ what: `answers of ${shown}`, why: "there are none" }] : [],
    findings,
  };
}

const checkedOfStore: Readonly<Record<EngineName, readonly string[]>> = {
  sqlite: ["settings", "tables"],
  postgres: ["settings", "tables"],
  mysql: ["settings", "tables"],
  redis: ["settings"],
  module: ["that it opens"],
};

async function examineStore(target: StoreTarget): Promise<Diagnosis> {
  const { shown, location } = target;
  const found = findingsOf(shown);
  const missed = (what: string, why: string): Diagnosis["missed"] => [{ what: `${what} of ${shown}`, why }];
  try {
    const { doubts, clock } = await inspectStore(target);
    const checked = [...checkedOfStore[location.engine], ...(clock === undefined ? [] : ["clock"])];
    const findings = [
      ...doubts.map(([id, message]) => found(id, message)),
      ...(clock === undefined ? [] : clockFinding(found, clock)),
    ];
    // The store itself refuses what is an error here.
    const hasFault = findings.some(({ severity }) => severity === "error");
    if (hasFault || location.engine === "redis") {
      const why = hasFault ? "the store has a fault" : "Redis would have to scan all keys";
      return { subjects: [{ shown, checked }], missed: missed("undecided keys and tasks", why), findings };
    }
    await withOperatorStore(target, async ({ idempotency, canList = true, work }) => {
      if (!canList) {
        findings.push(found("keys-not-listable", "the store has no list()"));
        return;
      }
      checked.push("undecided keys", ...(work === undefined ? [] : ["tasks"]));
      let count = 0;
      for await (const _key of undecidedKeys(idempotency)) count += 1;
      const held = `${count === 1 ? "1 key waits" : `${count} keys wait`} for a decision`;
      if (count > 0) findings.push(found("keys-held", held));
      const late = work === undefined ? [] : await workDoubts(work);
      findings.push(...late.map(([id, message]) => found(id, message)));
    });
    return { subjects: [{ shown, checked }], missed: [], findings };
  } catch (error) {
    if (error instanceof UsageError || !(error instanceof CommandError)) throw error;
    return {
      subjects: [{ shown, checked: [] }],
      missed: missed("settings", "it cannot be reached"),
      findings: [found("store-unreachable", error.message)],
    };
  }
}

interface Queue extends QueueSummary {
  /** The age of a task that is neither new nor meant to wait; undefined without one. */
  readonly lateMs: number | undefined;
}

const queueRows: readonly Row<Queue>[] = [
  ["tasks-dead", ({ queue, dead }) => dead > 0 && `${countOf(dead, "dead ")} in the queue ${queue}`],
  ["tasks-old", ({ queue, lateMs }) => lateMs !== undefined && lateText(queue, lateMs)],
  [
    "queue-paused",
    ({ queue, paused }) => paused !== undefined && `the queue ${queue} is paused ${decisionText(paused)}`,
  ],
];

async function workDoubts(work: OperatorWork): Promise<readonly Doubt[]> {
  const doubts: Doubt[] = [];
  for (const summary of await work.summaries()) {
    // oxlint-disable-next-line no-await-in-loop -- a store may have one connection
    doubts.push(...doubtsOf(queueRows, { ...summary, lateMs: await lateMsOf(work, summary) }));
  }
  return doubts;
}
