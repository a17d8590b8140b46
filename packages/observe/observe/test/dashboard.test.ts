import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { channels } from "@countersign/core";
import { prometheus } from "@countersign/observe/prometheus";
import { describe, expect, test } from "@jest/globals";
import { Registry } from "prom-client";
import { parse } from "yaml";
import { liveThrough } from "@countersign/test-support/runs/observed-life.ts";

const read = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../${name}`, import.meta.url)), "utf8");

interface Panel {
  readonly type: string;
  readonly title: string;
  readonly fieldConfig?: {
    readonly overrides: readonly {
      readonly matcher: { readonly options: string };
      readonly properties: readonly { readonly value: { readonly fixedColor: string } }[];
    }[];
  };
  readonly targets?: readonly { readonly expr: string }[];
}
const panels: readonly Panel[] = JSON.parse(read("dashboard.json")).panels;
const shown = panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const));

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly runbook_url?: string };
}
const rules: readonly Rule[] = parse(read("alerts.yml")).groups.flatMap(
  ({ rules: all }: { rules: readonly Rule[] }) => all,
);
const woken = rules.map(({ alert, expr }) => [alert, expr] as const);

/** Every series that a scrape has, with the labels that it has. */
async function emitted(): Promise<Map<string, Set<string>>> {
  const registry = new Registry();
  const { store } = await liveThrough();
  const queues = [{ queue: "outcomes", open: 1, dead: 1, oldestOpenMs: 1 }];
  const work = { payouts: { summaries: () => Promise.resolve(queues) } };
  const end = prometheus({ registry, heldKeys: { payouts: store }, work });
  await liveThrough();
  channels.leaseLost.publish({ guard: "exampleGuard", key: "k", code: "lease-lost", req: undefined });
  const text = await registry.metrics();
  end();
  const series = new Map<string, Set<string>>();
  for (const [, type, kind] of text.matchAll(/^# TYPE (\w+) (\w+)$/gm)) {
    const suffixes = kind === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
    for (const suffix of suffixes) series.set(`${type}${suffix}`, new Set());
  }
  for (const [, name = "", labels = ""] of text.matchAll(/^(\w+)\{(.*)\} /gm)) {
    for (const [, label = ""] of labels.matchAll(/(\w+)="/g)) series.get(name)?.add(label);
  }
  return series;
}

const namesIn = (expr: string): string[] => expr.match(/countersign_\w+/g) ?? [];

/** What an expression groups by, and what it selects by. */
const labelsIn = (expr: string): string[] =>
  [...expr.matchAll(/(?:by|on) \(([^)]*)\)|\{([^}]*)\}/g)].flatMap(([, by = "", selector = ""]) => [
    ...(by.match(/\w+/g) ?? []),
    ...[...selector.matchAll(/(\w+)[!=]/g)].map(([, label = ""]) => label),
  ]);

describe.each([
  ["the dashboard", shown],
  ["the alert rules", woken],
])("%s", (_name, expressions) => {
  test.each(expressions)("%s asks for what is emitted", async (_title, expr) => {
    const series = await emitted();
    const names = namesIn(expr);
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) expect([...series.keys()]).toContain(name);
    const known = new Set(names.flatMap((name) => [...(series.get(name) ?? [])]));
    for (const label of labelsIn(expr)) expect([...known]).toContain(label);
  });
});

test("decisions have the colours of their outcomes, and other lines are as few as the reader says", () => {
  const { templating } = JSON.parse(read("dashboard.json")) as {
    templating: { list: readonly { name: string; query: string; current: { value?: string } }[] };
  };
  const lines = templating.list.find(({ name }) => name === "lines");
  expect(lines).toMatchObject({ query: "5,10,100", current: { value: "5" } });
  const overrides = panels.find(({ title }) => title === "Decisions")?.fieldConfig?.overrides ?? [];
  const colours = overrides.map(({ matcher, properties: [colour] }) => [
    matcher.options,
    colour?.value.fixedColor,
  ]);
  expect(Object.fromEntries(colours)).toEqual({ pass: "green", reject: "red", error: "purple" });
  // A sum over all labels is one number.
  const ofLabels = shown.flatMap(([title, expr]) => {
    const by = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, labels = ""]) => labels.split(", "));
    return by.some((label) => label !== "le") ? [[title, expr] as const] : [];
  });
  expect(ofLabels.length).toBeGreaterThan(15);
  const unlimited = ofLabels.filter(
    ([, expr]) => !/ and on \([\w, ]+\) topk\(\$lines, |^(?:sum\(|bottomk\(\$lines, )/.test(expr),
  );
  expect(unlimited).toEqual([]);
});

describe("increase() sees nothing of a counter's first event", () => {
  const increases = [...shown, ...woken].flatMap(([title, expr]) =>
    [...expr.matchAll(/increase\(([^()]+)\[(\w+)\]\)/g)].map(
      ([, series = "", window = ""]) => [title, { expr, series, window }] as const,
    ),
  );

  test.each(increases)("%s counts in full what was not there before", (_title, { expr, series, window }) => {
    const grown = `max_over_time(${series}[${window}]) unless ${series} offset ${window}`;
    expect(expr).toContain(`((${grown}) or increase(${series}[${window}]))`);
  });
});

test("held keys, which every process reads of the same store, are not summed over processes", () => {
  const held = [...shown, ...woken].map(([, expr]) => expr).filter((expr) => /held_keys/.test(expr));
  expect(held.filter((expr) => !expr.startsWith("absent("))).toEqual([
    "sum(max by (store) (countersign_held_keys))",
    "max by (store) (countersign_held_keys) > 0",
  ]);
});

test("every metric is on the dashboard", async () => {
  const base = (name: string): string => name.replace(/_(?:bucket|sum|count)$/, "");
  const asked = new Set(shown.flatMap(([, expr]) => namesIn(expr)).map(base));
  expect(asked).toEqual(new Set([...(await emitted()).keys()].map(base)));
});

test("what an operator must see has an alert, and each of them is on the page", () => {
  const page = readFileSync(fileURLToPath(new URL("../../../../docs/observe.md", import.meta.url)), "utf8");
  const names = rules.map(({ alert }) => alert);
  for (const what of [
    "HeldKeys",
    "LeaseLost",
    "StoreErrors",
    "OldKeyUsed",
    "EventsDeadLettered",
    "TasksDead",
    "OutcomeOverdue",
    "ClockSkew",
  ]) {
    expect(names).toContain(`Countersign${what}`);
  }
  const told = [...page.matchAll(/^- `(page|ticket)`: (.*)$/gm)].flatMap(([, severity, list = ""]) =>
    [...list.matchAll(/`(\w+)`/g)].map(([, name]) => `${severity} ${name}`),
  );
  expect(told).toHaveLength(rules.length);
  expect(new Set(told)).toEqual(new Set(rules.map(({ alert, labels }) => `${labels.severity} ${alert}`)));
});

describe("the runbooks", () => {
  const { repository: code } = JSON.parse(read("../../../package.json")) as { repository: { url: string } };
  const repository = code.url.replace(/^git\+(.*)\.git$/, "$1");
  const document = "docs/alerts.md";
  const page = read(`../../../${document}`);
  const headings = [...page.matchAll(/^### (\w+)$/gm)].map(([, heading = ""]) => heading);

  test("have a section for each rule, and for nothing else", () => {
    expect(new Set(headings)).toEqual(new Set(rules.map(({ alert }) => alert)));
  });

  test.each(rules)("are where the runbook_url of $alert leads", ({ alert, annotations }) => {
    // A repository's anchor of a heading of one word is the word in lower case.
    expect(annotations.runbook_url).toBe(`${repository}/blob/main/${document}#${alert.toLowerCase()}`);
  });
});
