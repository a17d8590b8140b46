import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import * as core from "@countersign/core";
import * as express from "@countersign/express";
import * as verify from "@countersign/http-signature-verify";
import * as idempotency from "@countersign/idempotency";
import * as payout from "countersign/payout";
import * as sqlite from "@countersign/store-sql";
import * as webhooks from "countersign/webhooks";
import { describe, expect, test } from "@jest/globals";
import * as countersign from "countersign";

type Exports = Readonly<Record<string, unknown>>;
const whole: readonly (readonly [string, Exports])[] = Object.entries({ payout, webhooks, sqlite });
const origins: readonly Exports[] = [payout, webhooks, sqlite, express, core, verify, idempotency];
const exported: Exports = countersign;

describe("countersign", () => {
  test.each(whole)("exports all of %s, each the very same", (_, origin) => {
    for (const [name, value] of Object.entries(origin)) expect([name, exported[name]]).toEqual([name, value]);
    expect(Object.keys(origin).filter((name) => exported[name] !== origin[name])).toEqual([]);
  });

  test.each(Object.keys(exported))("%s is that of its origin, and means one thing alone", (name) => {
    const meanings = new Set(origins.filter((origin) => name in origin).map((origin) => origin[name]));
    expect([...meanings]).toEqual([exported[name]]);
  });

  test.each([
    ["express", ["guardErrors"]],
    ["stores in memory", ["memoryIdempotencyStore", "memoryNonceStore"]],
    ["keys", ["cachedKeys", "directoryKeys", "jwksKeys", "keyUse"]],
    ["errors", ["GuardError", "isGuardError", "OptionError"]],
  ])("exports what an app needs of %s", (_, names) => {
    expect(names.filter((name) => typeof exported[name] !== "function")).toEqual([]);
  });

  test("loads by require(), as the same module", () => {
    const require = createRequire(import.meta.url);
    const script = 'process.stdout.write(Object.keys(require("countersign")).join())';
    const { stdout } = spawnSync(process.execPath, ["-e", script], {
      cwd: fileURLToPath(new URL(".", import.meta.url)),
      encoding: "utf8",
    });
    expect(new Set(stdout.split(","))).toEqual(new Set(Object.keys(exported)));
    expect(require.resolve("countersign")).toMatch(/packages.endpoints.countersign.dist.index\.js$/);
  });

  test("loads nothing of Express, and no driver", () => {
    const script =
      'await import("countersign"); const { createRequire } = await import("node:module");' +
      "process.stdout.write(Object.keys(createRequire(process.cwd() + '/x').cache).join('\\n'))";
    const { stdout, status } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
      cwd: fileURLToPath(new URL(".", import.meta.url)),
      encoding: "utf8",
    });
    expect(status).toBe(0);
    expect(stdout).not.toMatch(/node_modules.(express|libsql|better-sqlite3|pg|redis)./);
  });
});

describe("npx countersign without the command", () => {
  test("says what to install, and ends with 2", () => {
    const program = fileURLToPath(new URL("../dist/where.js", import.meta.url));
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, "keys", "held"], {
      encoding: "utf8",
    });
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toContain("npm install --save-dev @countersign/cli");
  });
});
