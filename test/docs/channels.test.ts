import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { channels, guardChannelName, noticeChannelName, traces } from "@countersign/core";
import { builtChannelName } from "@countersign/core/internal";
import { thrownChannelName } from "../../packages/kernel/core/dist/observation/channels.js";
import { expect, test } from "@jest/globals";
import { workspacePackages } from "../../scripts/workspace.mjs";
import { liveThrough } from "../support/runs/observed-life.ts";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");

interface Row {
  readonly kind: string;
  readonly members: readonly string[];
  readonly outcomes: readonly string[];
}

const namesIn = (cell = ""): string[] => [...cell.matchAll(/`([\w-]+)`/g)].map(([, name = ""]) => name);

const page = readFileSync(join(root, "docs", "observe.md"), "utf8");
const rows = new Map<string, Row>(
  [...page.matchAll(/^\| `(countersign:[\w-]+)` +\|(.*)\|$/gm)].map(([, name = "", rest = ""]) => {
    const [kind = "", , members, outcomes] = rest.split("|");
    return [name, { kind: kind.trim(), members: namesIn(members), outcomes: namesIn(outcomes) }];
  }),
);

const verdict = page.slice(0, page.indexOf("## Channels"));
const verdictMembers = [...verdict.matchAll(/^- ((?:`\w+`(?:, )?)+): /gm)].flatMap(([, names]) =>
  namesIn(names),
);

test("the page has the channels of the code, each as what it is", () => {
  const events = [
    guardChannelName,
    noticeChannelName,
    channels.keyUse.name,
    channels.settled.name,
    channels.leaseLost.name,
    builtChannelName,
    thrownChannelName,
  ];
  const traceNames = Object.values(traces).map(({ start }) =>
    String(start.name).replace(/^tracing:(.*):start$/, "$1"),
  );
  const kinds = Object.fromEntries([
    ...events.map((name) => [name, "event"]),
    ...traceNames.map((name) => [name, "trace"]),
  ]);
  expect(Object.fromEntries([...rows].map(([name, { kind }]) => [name, kind]))).toEqual(kinds);
});

test("no source names a channel that the page has not", () => {
  const sources = [...workspacePackages.values()].flatMap(({ folder }) => {
    const source = join(root, folder, "src");
    const names = readdirSync(source, { recursive: true, encoding: "utf8" });
    return names.filter((name) => name.endsWith(".ts")).map((name) => join(source, name));
  });
  const named = sources.flatMap(
    (file) => readFileSync(file, "utf8").match(/(?<=[`"])countersign:[a-z-]+(?=[`"])/g) ?? [],
  );
  expect(new Set(named)).toEqual(new Set(rows.keys()));
});

test("what is published has the members and outcomes of the page", async () => {
  const published = new Map<string, Set<string>>();
  const outcomes = new Map<string, Set<unknown>>();
  const ends = [...rows].map(([name, { kind }]) => {
    const heard = new Set<string>();
    const ended = new Set<unknown>();
    published.set(name, heard);
    outcomes.set(name, ended);
    const listener = (event: unknown): void => {
      for (const member of Object.keys(Object(event))) heard.add(member);
      if (Object(event).outcome !== undefined) ended.add(Object(event).outcome);
    };
    const names =
      kind === "event"
        ? [name]
        : [`tracing:${name}:start`, `tracing:${name}:end`, `tracing:${name}:asyncEnd`];
    for (const channel of names) subscribe(channel, listener);
    return () => names.forEach((channel) => unsubscribe(channel, listener));
  });
  await liveThrough();
  for (const end of ends) end();
  const ofTraces = ["outcome", "durationMs", "result", "error"];
  for (const [name, { kind, members }] of rows) {
    const told = published.get(name) ?? new Set();
    if (told.size === 0) continue;
    const known = name === guardChannelName ? [...verdictMembers, "req", "error"] : members;
    expect([name, known.filter((member) => !told.has(member) && !/^(req|error)$/.test(member))]).toEqual([
      name,
      [],
    ]);
    const allowed = new Set([...known, ...(kind === "trace" ? ofTraces : [])]);
    expect([name, [...told].filter((member) => !allowed.has(member))]).toEqual([name, []]);
  }
  for (const name of ["countersign:claim", "countersign:wait", "countersign:settled", "countersign:store"]) {
    const ended = [...(outcomes.get(name) ?? [])];
    expect(ended.length).toBeGreaterThan(0);
    expect(rows.get(name)?.outcomes).toEqual(expect.arrayContaining(ended));
  }
});
