// npm run release:dry. One line a step; ends with 0 only when every project installed from the registry and paid once.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endAll, inParallel, npm, root } from "../consumers/support.mjs";
import {
  build,
  checkRelease,
  cloneCheckout,
  publicManifests,
  publish,
  raiseVersion,
  uncommitted,
  withoutProvenance,
} from "./checkout.mjs";
import { consumers } from "./consumers.mjs";
import { releaseEnvironment, writeUserConfig } from "./environment.mjs";
import { installRegistry, startRegistry } from "./registry.mjs";

const signals = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

export async function dryRun() {
  const work = mkdtempSync(join(tmpdir(), "countersign-release-"));
  const startedAt = performance.now();
  const running = { registry: undefined };
  const finish = async () => {
    await endAll();
    await running.registry?.stop();
    rmSync(work, { recursive: true, force: true, maxRetries: 5 });
  };
  for (const [signal, code] of Object.entries(signals)) {
    process.once(signal, () => void finish().finally(() => process.exit(code)));
  }
  try {
    const release = await makeRelease(work, running);
    await inParallel(consumers, async (steps) => {
      for (const { title, run } of steps) await step(title, () => run(work, release));
    });
    console.log(`release dry run passed: ${release.version} in ${secondsSince(startedAt)} s`);
  } catch (error) {
    console.error(error);
    console.log("release dry run FAILED");
    process.exitCode = 1;
  } finally {
    await finish();
  }
}

/** Releases what is committed to a registry of its own, and returns the clone and its version. */
async function makeRelease(work, running) {
  const upstream = (await npm(["config", "get", "registry"], root)).trim();
  const folder = await step("installed verdaccio in a folder of this run", () => installRegistry(work));
  // From here on nothing of the user's npm and git.
  process.env = releaseEnvironment(process.env, work);
  const left = await uncommitted();
  if (left > 0) console.log(`note: ${left} files that are not committed take no part`);
  const clone = await step("cloned the commit, without a remote", () => cloneCheckout(work));
  const own = [...publicManifests(clone).values()].map(({ name }) => name);
  running.registry = await step("the registry listens on loopback; our names it has from nowhere else", () =>
    startRegistry(folder, { upstream, own }),
  );
  const { url } = running.registry;
  writeUserConfig(process.env, running.registry);
  await step("left out provenance, which only the workflow can state", () => withoutProvenance(clone));
  const version = await step("lerna version: versions, changelogs, a commit and its tag", () =>
    raiseVersion(clone),
  );
  await step(`changelogs, ranges and the table of versions say ${version}`, () =>
    checkRelease(clone, version),
  );
  await step("tsc -b of the packages", () => build(clone));
  await step("lerna publish from-package", () => publish(clone, url));
  await step(`the registry has ${own.length} packages in ${version}`, () =>
    checkPublished(url, own, version),
  );
  return { clone, version };
}

async function checkPublished(url, names, version) {
  for (const name of names) {
    const response = await fetch(url + encodeURIComponent(name));
    const { "dist-tags": tags, versions, readme = "" } = await response.json();
    if (tags?.latest !== version) throw new Error(`${name} is there as ${tags?.latest}`);
    const [inside] = /\]\((?!https:|#)[^)]*\)/.exec(readme) ?? [];
    if (!readme.includes("](https:") || inside !== undefined)
      throw new Error(`the README of ${name} that the registry shows leads to files: ${inside}`);
    const { tarball } = versions[version].dist;
    if (!tarball.startsWith(url)) throw new Error(`${name} is downloaded from ${tarball}`);
  }
}

async function step(title, work) {
  const startedAt = performance.now();
  try {
    const result = await work();
    console.log(`ok ${title} (${secondsSince(startedAt)} s)`);
    return result;
  } catch (error) {
    console.log(`FAILED ${title}`);
    throw error;
  }
}

function secondsSince(startedAt) {
  return ((performance.now() - startedAt) / 1000).toFixed(1);
}
