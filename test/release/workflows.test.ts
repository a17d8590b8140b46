import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "@jest/globals";
import { parse } from "yaml";

type Permissions = Readonly<Record<string, string>>;
interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, string | number | boolean>>;
  readonly env?: Readonly<Record<string, string>>;
}
interface Job {
  readonly uses?: string;
  readonly needs?: string;
  readonly environment?: string | { readonly name: string };
  readonly permissions?: Permissions;
  readonly secrets?: unknown;
  readonly "timeout-minutes"?: number;
  readonly steps?: readonly Step[];
}
interface Workflow {
  readonly on: Readonly<Record<string, unknown>>;
  readonly permissions?: Permissions;
  readonly jobs: Readonly<Record<string, Job>>;
}

const folder = fileURLToPath(new URL("../../.github/workflows", import.meta.url));
const files = readdirSync(folder);
const textOf = (file: string): string => readFileSync(join(folder, file), "utf8");
const read = (file: string): Workflow => parse(textOf(file)) as Workflow;
const jobsOf = (file: string): readonly Job[] => Object.values(read(file).jobs);
const stepsOf = (file: string): readonly Step[] => jobsOf(file).flatMap(({ steps = [] }) => steps);

test("there is a workflow for every change, one for each night, for a release and for the pages", () => {
  expect(new Set(files)).toEqual(new Set(["ci.yml", "nightly.yml", "pages.yml", "release.yml"]));
});

const identity = { "id-token": "write" } as const;
// Of all other jobs: the checkout alone.
const permissionsOf: Readonly<Record<string, Permissions>> = {
  "release.yml publish": { contents: "read", ...identity },
  // As much as the jobs of the workflow that it asks for.
  "release.yml pages": { contents: "read", pages: "write", ...identity },
  "pages.yml deploy": { pages: "write", ...identity },
};

describe.each(files)("%s", (file) => {
  test("uses actions by the digest of a commit, and says of which version", () => {
    const lines = textOf(file)
      .split("\n")
      .filter((line) => /^\s*(- )?uses:/.test(line));
    const wrong = lines.filter(
      (line) => !/uses: (\.\/\S+|[\w-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$/.test(line),
    );
    expect(lines.length).toBeGreaterThan(0);
    expect(wrong).toEqual([]);
  });

  test("gives no job more than it needs", () => {
    expect(read(file).permissions).toEqual({});
    for (const [name, job] of Object.entries(read(file).jobs)) {
      const expected = permissionsOf[`${file} ${name}`] ?? { contents: "read" };
      expect([name, job.permissions]).toEqual([name, expected]);
      expect(job.secrets).toBeUndefined();
    }
  });

  test("never runs a stranger's code with the repository's rights", () => {
    expect(Object.keys(read(file).on)).not.toContain("pull_request_target");
    expect(Object.keys(read(file).on)).not.toContain("workflow_run");
  });

  test("puts nothing that others have named into a shell's text", () => {
    const inserting = stepsOf(file).filter(({ run = "" }) => run.includes("${{"));
    expect(inserting).toEqual([]);
  });

  test("keeps no credentials in the checkout, and takes nothing from a cache", () => {
    const used = (action: string): readonly Step[] =>
      stepsOf(file).filter(({ uses = "" }) => uses.startsWith(`${action}@`));
    for (const { with: given } of used("actions/checkout"))
      expect(given?.["persist-credentials"]).toBe(false);
    for (const { with: given } of used("actions/setup-node")) {
      expect(given?.["package-manager-cache"]).toBe(false);
      expect(given?.["cache"]).toBeUndefined();
    }
    expect(used("actions/checkout").length).toBe(used("actions/setup-node").length);
  });

  test("ends, whatever hangs", () => {
    const endless = jobsOf(file).filter(
      (job) => job.uses === undefined && job["timeout-minutes"] === undefined,
    );
    expect(endless).toEqual([]);
  });
});

test("every change runs all of .ci/run, on the oldest Node that is supported", () => {
  const { engines } = JSON.parse(readFileSync(join(folder, "../../package.json"), "utf8")) as {
    engines: { node: string };
  };
  expect(Object.keys(read("ci.yml").on)).toEqual(expect.arrayContaining(["push", "pull_request"]));
  expect(stepsOf("ci.yml").filter(({ run = "" }) => run.endsWith(" .ci/run"))).toHaveLength(1);
  const versions = files.flatMap(stepsOf).map(({ with: given }) => given?.["node-version"]);
  const nodes = versions.flatMap((version) => (version === undefined ? [] : [`>=${version}`]));
  expect(new Set(nodes)).toEqual(new Set([engines.node]));
});

test("a release comes from a tag alone, after .ci/run, in an environment of its own", () => {
  const { on, jobs } = read("release.yml");
  expect(on).toEqual({ push: { tags: [expect.stringMatching(/^v/)] } });
  expect(jobs["ci"]?.uses).toBe("./.github/workflows/ci.yml");
  expect(jobs["publish"]).toMatchObject({ needs: "ci", environment: "release" });
  const published = jobs["publish"]?.steps?.filter(({ run = "" }) => /lerna publish/.test(run)) ?? [];
  expect(published.map(({ run }) => run)).toEqual([expect.stringContaining("publish from-package --yes")]);
  // A token is there for the one step that publishes.
  const tokens = files.flatMap(stepsOf).filter(({ env = {} }) => "NPM_TOKEN" in env);
  expect(tokens).toEqual(published);
});

describe("pages.yml", () => {
  const { on, jobs } = read("pages.yml");

  test("comes behind a publication or by hand, and no change of a stranger gets there", () => {
    expect(new Set(Object.keys(on))).toEqual(new Set(["workflow_call", "workflow_dispatch"]));
    expect(read("release.yml").jobs["pages"]).toMatchObject({
      needs: "publish",
      uses: "./.github/workflows/pages.yml",
    });
  });

  test("builds with no right to deploy, and deploys with no code of a dependency", () => {
    const runs = jobs["build"]?.steps?.flatMap(({ run = [] }) => run);
    expect(runs).toEqual(["npm ci --ignore-scripts", "npm run docs:build"]);
    expect(jobs["deploy"]).toMatchObject({ needs: "build", environment: { name: "github-pages" } });
    expect(jobs["deploy"]?.steps?.map(({ uses = "" }) => uses.split("@")[0])).toEqual([
      "actions/deploy-pages",
    ]);
  });

  test("takes the folder that docs:build writes to", () => {
    const uploads =
      jobs["build"]?.steps?.filter(({ uses = "" }) => /upload-pages-artifact@/.test(uses)) ?? [];
    expect(uploads.map(({ with: given }) => given)).toEqual([{ path: "site/dist" }]);
    const { scripts } = JSON.parse(readFileSync(join(folder, "../../package.json"), "utf8")) as {
      scripts: Readonly<Record<string, string>>;
    };
    expect(scripts["docs:build"]).toBe("node site/run.mjs build");
    const source = readFileSync(join(folder, "../../site/scripts/source.mjs"), "utf8");
    expect(source).toMatch(/outputFolder = path\.join\(site, "dist"\)/);
  });
});
