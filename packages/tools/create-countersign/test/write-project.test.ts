import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { beforeEach, describe, expect, test } from "@jest/globals";
import { testFolder } from "@countersign/test-support/runs/after-test.ts";
import type { ProjectFiles } from "../src/project-files.ts";
import { FolderError, writeProject } from "../src/write-project.ts";

let work: string;

beforeEach(() => {
  work = testFolder();
});

const whole: ProjectFiles = new Map([
  ["README.md", "a"],
  ["src/server.js", "b"],
]);

/** Fails with its second file, whose folder is a file: as a full disk would, after something was written. */
const failing: ProjectFiles = new Map([
  ["README.md", "a"],
  ["README.md/below", "b"],
]);

/** The whole, during whose writing somebody else does something. */
function* meanwhile(act: () => void): Generator<[string, string]> {
  yield* whole;
  act();
}

describe("writeProject", () => {
  test("leaves the project, and nothing beside it, with the rights of any folder", () => {
    const before = statSync(work).mode;
    mkdirSync(path.join(work, "usual"));
    writeProject(path.join(work, "new"), whole);
    expect(readdirSync(work).toSorted()).toEqual(["new", "usual"]);
    expect(readdirSync(path.join(work, "new"), { recursive: true, encoding: "utf8" }).toSorted()).toEqual([
      "README.md",
      "src",
      path.join("src", "server.js"),
    ]);
    expect(statSync(path.join(work, "new")).mode).toBe(statSync(path.join(work, "usual")).mode);
    expect(statSync(work).mode).toBe(before);
  });

  test.each([
    ["a new folder", "new", []],
    ["the folders above", path.join("a", "b", "new"), []],
    ["a folder that was empty", "empty", ["empty"]],
  ])("leaves nothing in %s when it fails half way", (_name, name, left) => {
    if (name === "empty") mkdirSync(path.join(work, name));
    const write = (): void => writeProject(path.join(work, name), failing);
    expect(write).toThrow(FolderError);
    expect(write).toThrow(/was not written: /);
    expect(readdirSync(work, { recursive: true })).toEqual(left);
  });

  test("takes back what it has moved when something came meanwhile", () => {
    const folder = path.join(work, "empty");
    mkdirSync(folder);
    expect(() =>
      writeProject(
        folder,
        meanwhile(() => writeFileSync(path.join(folder, "src"), "somebody's")),
      ),
    ).toThrow(/src has come meanwhile/);
    expect(readdirSync(folder)).toEqual(["src"]);
  });

  test("takes nothing of a folder that came meanwhile", () => {
    const folder = path.join(work, "new");
    const come = (): void => {
      mkdirSync(folder);
      writeFileSync(path.join(folder, "notes.txt"), "somebody's");
    };
    expect(() => writeProject(folder, meanwhile(come))).toThrow(FolderError);
    expect(readdirSync(work)).toEqual(["new"]);
    expect(readdirSync(folder)).toEqual(["notes.txt"]);
  });
});
