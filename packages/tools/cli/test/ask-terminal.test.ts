import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "@jest/globals";
import { askAtTerminal } from "../src/ask-terminal.ts";

class Terminal extends PassThrough {
  readonly isTTY: boolean;
  constructor(isTTY: boolean) {
    super();
    this.isTTY = isTTY;
  }
}

function open(): {
  input: Terminal;
  output: Terminal;
  ask: (question: string) => Promise<string | undefined>;
} {
  const [input, output] = [new Terminal(true), new Terminal(true)];
  const ask = askAtTerminal(input, output);
  if (ask === undefined) throw new Error("nobody is asked");
  return { input, output, ask };
}

describe("askAtTerminal", () => {
  test.each([
    ["a line", "done\n", "done"],
    ["an empty line", "\n", ""],
    ["the first of two lines", "done\nmore\n", "done"],
    ["Ctrl-C", "\u0003", undefined],
    ["Ctrl-D", "\u0004", undefined],
    ["Ctrl-C behind the answer, before Enter", "done\u0003", undefined],
  ])("takes %s", async (_name, typed, answer) => {
    const { input, ask } = open();
    const answered = ask("Sure? ");
    input.write(typed);
    expect(await answered).toBe(answer);
  });

  test("takes the end of the input as no answer", async () => {
    const { input, ask } = open();
    const answered = ask("Sure? ");
    input.end();
    expect(await answered).toBeUndefined();
  });

  test("shows the question", async () => {
    const { input, output, ask } = open();
    const answered = ask("Sure? ");
    input.write("yes\n");
    await answered;
    output.end();
    expect(await text(output)).toContain("Sure? ");
  });

  test.each([
    ["the input is a pipe", false, true],
    ["the question would not be seen", true, false],
    ["there is no terminal at all", false, false],
  ])("asks nobody when %s", (_name, input, output) => {
    expect(askAtTerminal(new Terminal(input), new Terminal(output))).toBeUndefined();
  });
});
