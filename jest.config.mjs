import { availableParallelism } from "node:os";
import process from "node:process";
import { documentedParts, packageFolder, workspacePackages } from "./scripts/workspace.mjs";

const measured = [
  "countersign",
  "core",
  "explain",
  "express",
  "fastify",
  "fetch",
  "http-message-signatures",
  "raw-body",
  "content-digest",
  "http-signature-verify",
  "ip-allowlist",
  "idempotency",
  "idempotency-guard",
  "work",
  "payout",
  "store-contract",
  "store-redis",
  "store-sql",
  "webhook-basic-auth",
  "webhook-hmac",
  "webhooks",
  "client",
  "outcomes",
  "observe",
  "inspector",
];

/** The folder whose coverage counts for a package, or for an entry point of one. */
function folderOf(name) {
  return workspacePackages.has(name) ? packageFolder(name) : documentedParts.get(name).source;
}

// Most tests refuse something, and few of them listen: in their reports each line of it would be noise. See site/pages/reference/packages/core.md.
process.env["COUNTERSIGN_STDERR"] ??= "off";
// Where tests are, relative to the root.
const folders = ["packages/*/*/test", "examples/*/test", "test"];

// Where .ci/run has put the newest of those libraries of which the lock file holds an older one, for older versions of Node.
const newest = process.env["NEWEST_LIBRARIES"];
// Where .ci/run has put better-sqlite3, to take the place of libsql: it has to be compiled where no binary can be downloaded.
const betterSqlite3 = process.env["BETTER_SQLITE3"];

/** @type {import("jest").Config} */
const config = {
  moduleNameMapper: {
    ...(newest && { "^(kysely|@mikro-orm/(?:core|mysql|postgresql))$": `${newest}/node_modules/$1` }),
    ...(betterSqlite3 && { "^(?:libsql|better-sqlite3)$": `${betterSqlite3}/node_modules/better-sqlite3` }),
  },
  testEnvironment: "<rootDir>/test/support/runs/environment.mjs",
  // PostgreSQL, Redis and MariaDB, where they are not running already.
  globalSetup: "<rootDir>/test/support/runs/engine-setup.mjs",
  globalTeardown: "<rootDir>/test/support/runs/engine-teardown.mjs",
  testSequencer: "<rootDir>/test/support/runs/sequencer.mjs",
  reporters: ["<rootDir>/test/support/runs/package-reporter.mjs", "summary"],
  // Many tests wait for a clock, a socket or a process: with one worker more than processors, a quarter of their time was nobody's.
  maxWorkers: 2 * availableParallelism() + 1,
  // A worker keeps something of each file that it ran; beyond this it is replaced between two files.
  workerIdleMemoryLimit: "1GB",
  // A worker that has ended its tests ends by itself. On a busy machine that may take longer than jest's half second.
  workerGracefulExitTimeout: 30_000,
  // On a busy machine servers and processes start slowly. No test is about how fast it is itself.
  testTimeout: 120_000,
  testMatch: [...folders.map((folder) => `<rootDir>/${folder}/**/*.test.ts`), "!**/*.long.test.ts"],
  extensionsToTreatAsEsm: [".ts"],
  transform: {
    "^.+\\.ts$": ["@swc/jest", { swcrc: false, jsc: { target: "es2022", parser: { syntax: "typescript" } } }],
  },
  modulePathIgnorePatterns: ["<rootDir>/bench/", "<rootDir>/site/(node_modules|dist|.pages)/"],
  // Tests import the built packages; source maps lead back to src. Files of types alone have no line to run.
  collectCoverageFrom: [
    "packages/*/*/{src,dist}/**/*.{ts,js}",
    "!packages/adapters/express/**/types.*",
    "!packages/*/*/{src,dist}/codes.*",
    "!packages/endpoints/countersign/**/where.*",
    "!packages/stores/store-contract/**/harness.*",
    "!packages/kernel/idempotency/**/remote-store.*",
    "!packages/endpoints/countersign/**/{events,webhook-handler-types}.*",
  ],
  coverageThreshold: Object.fromEntries(measured.map((name) => [`./${folderOf(name)}/`, { lines: 95 }])),
  coverageProvider: "v8",
};

/** What takes long and adds little to a usual change, for `npm run test:long`. @type {import("jest").Config} */
export const long = {
  ...config,
  testMatch: folders.map((folder) => `<rootDir>/${folder}/**/*.{long,table,fuzz}.test.ts`),
};

export default config;
