import { readFileSync } from "node:fs";
import { expect, test } from "@jest/globals";

interface Manifest {
  readonly version: string;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

const { version, peerDependencies } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8"),
) as Manifest;
const own = Object.entries(peerDependencies).filter(([name]) => name.startsWith("@countersign/"));

// All packages have one version. lerna raises dependencies, and scripts/release-files.mjs peers.
test.each(own)("the peer %s is accepted in the version of this release", (_name, range) => {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  const [oldestMajor, oldestMinor = 0, oldestPatch = 0] = range.replace(/^\^/, "").split(".").map(Number);
  expect(range).toMatch(/^\^\d+\.\d+\.\d+$/);
  expect(major).toBe(oldestMajor);
  if (major === 0) expect(minor).toBe(oldestMinor);
  expect(minor * 1_000_000 + patch).toBeGreaterThanOrEqual(oldestMinor * 1_000_000 + oldestPatch);
});
