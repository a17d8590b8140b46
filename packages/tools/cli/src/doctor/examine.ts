import { UsageError, type CommandIo } from "../command-io.ts";
import { parseInteger } from "../input.ts";
import { readTarget, type StoreFlags } from "../operator/store-options.ts";
import { printable } from "../printable.ts";
import { appFindings } from "./app-findings.ts";
import { askApp } from "./ask-app.ts";
import type { Finding } from "./findings.ts";
import { assertProbe, urlFindings } from "./probe-url.ts";
import type { Diagnosis } from "./report.ts";
import { storeFindings } from "./store-findings.ts";

/** The flags of `countersign doctor` that say where to look. */
export interface ExamineFlags extends StoreFlags {
  readonly app?: string | undefined;
  readonly url?: string | undefined;
  readonly allowHttp?: boolean | undefined;
  readonly timeout: string;
}

/** Looks at what the flags name. Throws a UsageError where they name nothing, or what cannot be looked at. */
export async function examine(flags: ExamineFlags, io: CommandIo): Promise<Diagnosis> {
  const { app, url, allowHttp, storeUrl, storeModule } = flags;
  const timeoutMs = parseInteger("--timeout", flags.timeout, { min: 1, max: 600_000 });
  const target = storeUrl === undefined && storeModule === undefined ? undefined : readTarget(flags);
  if (url !== undefined) assertProbe({ url, allowHttp });
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
    findings.push(...(await urlFindings({ url, allowHttp, timeoutMs })));
  }
  if (target !== undefined) {
    subjects.push(target.shown);
    findings.push(...(await storeFindings(target)));
  }
  return { subjects, findings };
}
