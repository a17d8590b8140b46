import { CommandError, UsageError, type CommandIo, type Switches, type Texts } from "../command-io.ts";
import { parseTimeout } from "../input.ts";
import { inspectStore, withOperatorStore } from "../operator/operator-store.ts";
import { undecidedKeys } from "../operator/records.ts";
import { readTarget, type EngineName, type StoreFlags, type StoreTarget } from "../operator/store-target.ts";
import { printable } from "../output.ts";
import { appFindings } from "./app-findings.ts";
import { askApp, type AppFacts } from "./ask-app.ts";
import { clockFinding, findingsOf, type Finding, type Found } from "./findings.ts";
import { assertProbe, urlFindings } from "./probe-url.ts";
import { workDoubts } from "./work-doubts.ts";

export interface ExamineFlags extends StoreFlags, Texts<"app" | "url">, Switches<"allowHttp"> {
  readonly timeout: string;
}

/** What was looked at, and for what. */
interface Subject {
  readonly shown: string;
  readonly checked: readonly string[];
}

/** What was not looked at. */
interface Missed {
  readonly what: string;
  readonly why: string;
}

export interface Diagnosis {
  readonly subjects: readonly Subject[];
  readonly missed: readonly Missed[];
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
    subjects: examined.flatMap(({ subject }) => subject ?? []),
    missed: examined.flatMap(({ missed }) => missed),
    findings: examined.flatMap(({ findings }) => findings),
  };
}

interface Examined extends Pick<Diagnosis, "missed" | "findings"> {
  readonly subject?: Subject;
}

function leftOut(what: string, why: string): Examined {
  return { missed: [{ what, why }], findings: [] };
}

async function examineApp(app: string, timeoutMs: number, now: number): Promise<Examined> {
  const facts = await askApp(app, timeoutMs);
  const names = [...new Set(facts.built.map(({ factory }) => factory))];
  const kind = facts.kind === "unknown" ? "" : `${facts.kind}; `;
  const name = `app ${printable(app)}`;
  const isProduction = process.env["NODE_ENV"] === "production";
  return {
    subject: {
      shown: `${name} (${kind}${names.length === 0 ? "no check" : printable(names.join(", "))})`,
      checked: ["options of its checks and stores", ...checkedOf[facts.kind]],
    },
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

async function examineUrl(url: string, timeoutMs: number): Promise<Examined> {
  const findings = await urlFindings(url, timeoutMs);
  const shown = printable(url);
  if (findings.some(({ id }) => id === "url-unreachable"))
    return {
      subject: { shown, checked: [] },
      missed: [{ what: `answers of ${shown}`, why: "there are none" }],
      findings,
    };
  return {
    subject: { shown, checked: ["answers to a text and to broken JSON", "clock"] },
    missed: [],
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

async function examineStore(target: StoreTarget): Promise<Examined> {
  const { shown, location } = target;
  const found = findingsOf(shown);
  const missed = (what: string, why: string): readonly Missed[] => [{ what: `${what} of ${shown}`, why }];
  try {
    const { doubts, clock } = await inspectStore(target);
    const findings = [
      ...doubts.map(([id, message]) => found(id, message)),
      ...(clock === undefined ? [] : clockFinding(found, clock)),
    ];
    const checked = [...checkedOfStore[location.engine], ...(clock === undefined ? [] : ["clock"])];
    // The store itself refuses what is an error here.
    const isSound = findings.every(({ severity }) => severity !== "error");
    if (!isSound || location.engine === "redis") {
      const why = isSound ? "Redis would have to scan all keys" : "the store has a fault";
      return { subject: { shown, checked }, missed: missed("undecided keys and tasks", why), findings };
    }
    const waits = await waiting(found, target);
    return {
      subject: { shown, checked: [...checked, ...waits.checked] },
      missed: [],
      findings: [...findings, ...waits.findings],
    };
  } catch (error) {
    if (error instanceof UsageError || !(error instanceof CommandError)) throw error;
    const unreachable = found("store-unreachable", error.message);
    return {
      subject: { shown, checked: [] },
      missed: missed("settings", "it cannot be reached"),
      findings: [unreachable],
    };
  }
}

async function waiting(
  found: Found,
  target: StoreTarget,
): Promise<Pick<Subject, "checked"> & Pick<Diagnosis, "findings">> {
  return await withOperatorStore(target, async ({ idempotency, canList = true, work }) => {
    if (!canList) return { checked: [], findings: [found("keys-not-listable", "the store has no list()")] };
    let count = 0;
    for await (const _key of undecidedKeys(idempotency)) count += 1;
    const held = `${count === 1 ? "1 key waits" : `${count} keys wait`} for a decision`;
    const doubts = work === undefined ? [] : await workDoubts(work);
    return {
      checked: ["undecided keys", ...(work === undefined ? [] : ["tasks"])],
      findings: [
        ...(count === 0 ? [] : [found("keys-held", held)]),
        ...doubts.map(([id, message]) => found(id, message)),
      ],
    };
  });
}
