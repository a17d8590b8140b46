import { CommandError, UsageError, type CommandIo, type Switches, type Texts } from "../command-io.ts";
import { parseTimeout } from "../input.ts";
import { inspectStore, withOperatorStore } from "../operator/operator-store.ts";
import { undecidedKeys } from "../operator/records.ts";
import { readTarget, type StoreFlags, type StoreTarget } from "../operator/store-target.ts";
import { printable } from "../output.ts";
import { appFindings } from "./app-findings.ts";
import { askApp } from "./ask-app.ts";
import { clockFinding, findingsOf, type Finding, type Found } from "./findings.ts";
import { assertProbe, urlFindings } from "./probe-url.ts";

export interface ExamineFlags extends StoreFlags, Texts<"app" | "url">, Switches<"allowHttp"> {
  readonly timeout: string;
}

export interface Diagnosis {
  readonly subjects: readonly string[];
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
  const subjects: string[] = [];
  const findings: Finding[] = [];
  if (app !== undefined) {
    const facts = await askApp(app, timeoutMs);
    const names = [...new Set(facts.built.map(({ factory }) => factory))];
    const kind = facts.kind === "unknown" ? "" : `${facts.kind}; `;
    const subject = `app ${printable(app)}`;
    subjects.push(`${subject} (${kind}${names.length === 0 ? "no check" : printable(names.join(", "))})`);
    const isProduction = process.env["NODE_ENV"] === "production";
    findings.push(...appFindings(subject, facts, { now: io.clock(), isProduction }));
  }
  if (url !== undefined) {
    subjects.push(printable(url));
    findings.push(...(await urlFindings(url, timeoutMs)));
  }
  if (target !== undefined) {
    subjects.push(target.shown);
    findings.push(...(await storeFindings(target)));
  }
  return { subjects, findings };
}

async function storeFindings(target: StoreTarget): Promise<readonly Finding[]> {
  const found = findingsOf(target.shown);
  try {
    const { doubts, clock, usable } = await inspectStore(target);
    const findings = [
      ...doubts.map(([id, message]) => found(id, message)),
      ...(clock === undefined ? [] : clockFinding(found, clock)),
    ];
    // The store itself refuses what is an error here.
    const isSound = usable && findings.every(({ severity }) => severity !== "error");
    return isSound ? [...findings, ...(await waiting(found, target))] : findings;
  } catch (error) {
    if (error instanceof UsageError || !(error instanceof CommandError)) throw error;
    return [found("store-unreachable", error.message)];
  }
}

/** Not on Redis: it would have to scan all keys. */
async function waiting(found: Found, target: StoreTarget): Promise<readonly Finding[]> {
  if (target.location.engine === "redis") return [];
  return await withOperatorStore(target, async ({ idempotency, canList = true }) => {
    if (!canList) return [found("keys-not-listable", "the store has no list()")];
    let count = 0;
    for await (const _key of undecidedKeys(idempotency)) count += 1;
    if (count === 0) return [];
    return [found("keys-held", `${count === 1 ? "1 key waits" : `${count} keys wait`} for a decision`)];
  });
}
