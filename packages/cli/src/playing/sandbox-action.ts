import { exitCodes, UsageError, type CommandIo, type ExitCode } from "../command-io.ts";
import type { ActionFlags, SandboxAction } from "../commands/sandbox.ts";
import { jsonDocument } from "../json-output.ts";
import { printable } from "../printable.ts";
import { failingInOneLine, sandboxApi } from "./sandbox-api.ts";

/** Has a sandbox that runs do one thing, and prints that it did. Throws a UsageError before anything is asked. */
export async function runSandboxAction(
  { name, path, second }: SandboxAction,
  [id = "", value = ""]: readonly string[],
  flags: ActionFlags,
  io: CommandIo,
): Promise<ExitCode> {
  const api = sandboxApi(flags);
  // A lone dot would be taken out of the path on its way.
  if (/^\.{0,2}$/.test(id)) throw new UsageError(`${name}: expected an id`);
  const body = {
    ...(path.includes(":id") ? {} : { payment_request_id: id }),
    ...(second === undefined ? {} : { [second.member]: value }),
  };
  // As deliveries shows the number.
  const named = path.startsWith("/sandbox/deliveries/") ? id.replace(/^#/, "") : id;
  const target = path.replace(":id", () => encodeURIComponent(named));
  return await failingInOneLine(io, async () => {
    const answer = await api.post(target, body);
    io.writeOut(flags.json === true ? jsonDocument(answer) : `${name} ${printable(id)}: done\n`);
    return exitCodes.asExpected;
  });
}
