import { allCodes } from "../explain/codes.ts";
import { Command } from "commander";
import { CommandError, exitCodes, type CommandIo, type Switches } from "../command-io.ts";
import { shownKey } from "../operator/key-text.ts";
import { createPaint, jsonLine, wrapped } from "../output.ts";

type CodeText = NonNullable<ReturnType<ReturnType<typeof allCodes>["get"]>>;

const notes = `
What the page of codes says, without the network. A code is in the log, and in
some answers.

Example:
  countersign code key-unknown

Exit codes:
  0  shown   1  unknown   2  usage
`;

export function codeCommand(io: CommandIo): Command {
  return new Command("code")
    .description("say what a code of a refusal or a notice means, and what to do")
    .argument("<code>", "as the log has it, such as held")
    .option("--json", "print one JSON document")
    .addHelpText("after", notes)
    .action((code: string, { json }: Switches<"json">) => {
      const codes = allCodes();
      const text = codes.get(code);
      if (text === undefined) throw unknownCode(code, [...codes.keys()]);
      io.writeOut(json === true ? jsonLine({ code, ...text }) : shownCode(code, text, io));
    });
}

function shownCode(code: string, { kind, by, cause, remedy }: CodeText, { colours, columns }: CommandIo) {
  const head = `${createPaint(colours)("bold", code)}  ${kind}; ${by}\n`;
  const room = Math.min(columns ?? 80, 80);
  return `${head}\nCause\n${wrapped(cause, room)}\nRemedy\n${wrapped(remedy, room)}`;
}

/** With the codes that begin alike. */
function unknownCode(code: string, known: readonly string[]): CommandError {
  const shared = (other: string): number => {
    let length = 0;
    while (length < code.length && code[length] === other[length]) length += 1;
    return length;
  };
  // oxlint-disable-next-line unicorn/no-array-sort -- toSorted is newer than the library that the compiler knows
  const nearest = [...known].sort((one, other) => shared(other) - shared(one));
  const near = nearest.slice(0, 5).filter((other) => shared(other) > 2);
  const hint = near.length === 0 ? "" : `; did you mean ${near.join(", ")}?`;
  return new CommandError(`${shownKey(code)}: no code of these packages${hint}`, exitCodes.otherwise);
}
