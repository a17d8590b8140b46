import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { readFlags } from "../src/flags.ts";
import { askAt, type Answers } from "../src/questions.ts";

let work: string;
let input: PassThrough;
let shown: string;
let answers: Promise<Answers | undefined>;

beforeEach(() => {
  work = mkdtempSync(path.join(tmpdir(), "create-countersign-ask-"));
});
afterEach(() => rmSync(work, { recursive: true, force: true }));

function ask(...args: readonly string[]): void {
  input = new PassThrough();
  const output = new PassThrough();
  shown = "";
  output.on("data", (chunk: Buffer) => {
    shown += chunk.toString("utf8");
  });
  answers = askAt(input, output)(readFlags(args), (folder) => path.join(work, folder));
}

/** Waits for the question, and types. */
async function answer(question: string, ...keys: readonly string[]): Promise<void> {
  await eventually(() => shown.includes(question));
  for (const key of keys) input.write(key);
}

const [enter, down, stop, rubOut] = ["\r", "\u001B[B", "\u0003", "\u007F"];

describe("the questions", () => {
  test("take the defaults of who only confirms", async () => {
    ask();
    await answer("Which folder?", enter);
    await answer("Which framework?", enter);
    await answer("Where are keys", enter);
    const expected = { folder: "payout-platform", framework: "express", store: "sqlite" };
    expect(await answers).toEqual(expected);
  });

  test("take what is typed and chosen", async () => {
    ask();
    await answer("Which folder?", "mine", enter);
    await answer("Which framework?", down, enter);
    await answer("Where are keys", down, enter);
    expect(await answers).toEqual({ folder: "mine", framework: "fastify", store: "postgres" });
  });

  test("leave out what the flags say", async () => {
    ask("mine", "--store", "postgres");
    await answer("Which framework?", enter);
    const expected = { folder: "mine", framework: "express", store: "postgres" };
    expect(await answers).toEqual(expected);
    expect(shown).not.toMatch(/Which folder|Where are keys/);
  });

  test("take no folder that is not empty", async () => {
    writeFileSync(path.join(work, "a"), "");
    ask("--framework", "express", "--store", "sqlite");
    await answer("Which folder?", "a", enter);
    await answer("a is there, and is no folder", rubOut, "b", enter);
    expect(await answers).toMatchObject({ folder: "b" });
  });

  test("end at the first that is stopped", async () => {
    ask();
    await answer("Which folder?", enter);
    await answer("Which framework?", stop);
    expect(await answers).toBeUndefined();
    expect(shown).toContain("Nothing was written.");
    expect(shown).not.toContain("Where are keys");
  });
});
