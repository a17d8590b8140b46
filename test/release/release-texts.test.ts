import { describe, expect, test } from "@jest/globals";
import { composeChangelog, raisePeers, supportedVersions } from "../../scripts/release-texts.mjs";

const fromLerna = `# Change Log

All notable changes to this project will be documented in this file.
See [Conventional Commits](https://conventionalcommits.org) for commit guidelines.

# [0.3.0](https://example.com/compare/v0.2.0...v0.3.0) (2026-01-02)


### Features

* a thing


`;
const own = `# Changelog

## Unreleased

What changes for users.

## 0.2.0 (2025-12-01)

What changed before.
`;

describe("composeChangelog", () => {
  test("makes a section of the notes and the commits, above the older ones", () => {
    expect(composeChangelog(fromLerna + own, "0.3.0", "2026-01-03")).toBe(`# Changelog

## Unreleased

## [0.3.0](https://example.com/compare/v0.2.0...v0.3.0) (2026-01-03)

What changes for users.

### Features

* a thing

## 0.2.0 (2025-12-01)

What changed before.
`);
  });

  test("does so for a first release, which has nothing to compare with, and for one without notes", () => {
    const text = "# Change Log\n\n# 0.2.0 (2026-01-02)\n\n* a\n\n# Changelog\n\n## Unreleased\n";
    const expected = "# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-01-02)\n\n* a\n";
    expect(composeChangelog(text, "0.2.0", "2026-01-02")).toBe(expected);
  });

  test.each([
    ["lerna wrote nothing", own],
    ["lerna wrote of another version", fromLerna.replaceAll("0.3.0", "0.3.1") + own],
    ["a dot stands for any character", fromLerna.replaceAll("0.3.0", "0x3.0") + own],
    ["nobody may write notes", fromLerna + own.replace("## Unreleased", "## Next")],
  ])("throws where %s", (_, text) => {
    expect(() => composeChangelog(text, "0.3.0", "2026-01-03")).toThrow(/^CHANGELOG\.md: /);
  });
});

describe("raisePeers", () => {
  const isOwn = (name: string): boolean => name.startsWith("@countersign/");

  test("raises the ranges of our own packages, and leaves the others and the order", () => {
    const peerDependencies = { "@countersign/devtools": "^0.1.0", express: "^5.0.0" };
    const manifest = JSON.stringify({ name: "x", peerDependencies, engines: {} });
    const raised = raisePeers(manifest, "0.2.0", isOwn);
    expect(JSON.parse(raised)).toEqual({
      name: "x",
      peerDependencies: { "@countersign/devtools": "^0.2.0", express: "^5.0.0" },
      engines: {},
    });
    expect(raised.indexOf("peerDependencies")).toBeLessThan(raised.indexOf("engines"));
  });

  test.each(['{"name":"x"}', '{ "peerDependencies": { "express": "^5.0.0" } }'])(
    "leaves %s as it is",
    (text) => {
      expect(raisePeers(text, "0.2.0", isOwn)).toBe(text);
    },
  );
});

describe("supportedVersions", () => {
  test("names the minor version", () => {
    const text = "a\n| 0.1.x   | yes, b |\n| < 0.1   | no |\nc";
    expect(supportedVersions(text, "1.12.3")).toBe("a\n| 1.12.x   | yes, b |\n| < 1.12   | no |\nc");
  });

  test("throws where there is no table", () => {
    expect(() => supportedVersions("# Security\n", "0.2.0")).toThrow(/^SECURITY\.md: /);
  });
});
