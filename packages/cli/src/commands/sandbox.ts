import type { SandboxApiFlags } from "../playing/sandbox-api.ts";
import { Command, Option } from "commander";
import type { CommandIo, ExitCode } from "../command-io.ts";
import { loadPlaying } from "../load-package.ts";
import type { SandboxFlags } from "../playing/sandbox.ts";
import { addSandboxFlags } from "./sandbox-flags.ts";

const notes = `
It prints a line for each delivery as it is sent; times are UTC. A chance is a
number from 0 to 1; without one it is 1. The database holds the credentials of
endpoints. http endpoints of this machine need no flag.

Examples:
  countersign sandbox --port 4000 --speed 1440
  COUNTERSIGN_API_KEY=… countersign sandbox --db sandbox.db --ca authority.pem
  countersign sandbox --batch 2000 --duplicate 0.2 --drop-connection 0.1
  countersign sandbox --key test.private.pem --keyid test
  countersign trigger buyer.status_changed --url http://127.0.0.1:4000
  countersign sandbox buyer buyer-1 ACTIVE --url http://127.0.0.1:4000

The page shows deliveries as they happen, and sends payouts. Its address has a
token for this start; who has it acts as the service, signs with its key too,
and sees no key, password or secret.

SIGTERM and SIGINT end it; with --db, what was not delivered goes out after the
next start.

Exit codes:
  0  ended by a signal   2  usage, or the port or database cannot be had
`;

const actionNotes = `
The sandbox is one that runs.

Exit codes:
  0  done   1  refused   2  usage   3  the sandbox does not answer
`;

/** `countersign sandbox`: the lending service on a loopback address, until a signal ends it. */
export function sandboxCommand(io: CommandIo, finish: (code: ExitCode) => void): Command {
  const command = new Command("sandbox")
    // --url and --api-key of a subcommand are its own.
    .enablePositionalOptions()
    .description("run the lending service: its API, the simulation, and webhooks to the endpoints registered")
    .option("--host <address>", "loopback address to listen on", "127.0.0.1")
    .option("--port <port>", "port to listen on; 0 is a free one", "0")
    .addOption(
      new Option("--api-key <key>", "what X-API-KEY has to be (default: a random one, which is printed)").env(
        "COUNTERSIGN_API_KEY",
      ),
    )
    .option("--db <file>", "keeps the state; created when missing", ":memory:")
    .option("--allow-http", "accept endpoints at http URLs of other hosts too")
    .option("--speed <factor>", "divides retry delays and the retry period; 1440 makes a day a minute", "1")
    .option("--ca <file>", "issuer certificates (PEM) of https endpoints");
  addPageOptions(command)
    .commandsGroup("At a sandbox that runs:")
    .configureHelp({
      subcommandTerm: (action) =>
        [action.name(), ...action.registeredArguments.map((argument) => `<${argument.name()}>`)].join(" "),
    });
  for (const action of sandboxActions) command.addCommand(actionCommand(action, io, finish));
  return addDeliveryOptions(command)
    .option("--json", "print the address, and then each delivery, as a JSON document in a line")
    .addHelpText("after", notes)
    .action(async (flags: SandboxFlags) => {
      const { runSandbox } = await loadPlaying("sandbox", () => import("../playing/sandbox.ts"));
      finish(await runSandbox(flags, io));
    });
}

function addPageOptions(command: Command): Command {
  return command
    .option("--no-page", "serve no page at /")
    .option("--payout-url <url>", "payout endpoint that the page begins with")
    .option("--key <file>", "Ed25519 private key (PKCS#8 PEM) of its payouts (default: one that is made up)")
    .option("--keyid <id>", "name of the key as the platform knows it");
}

/** The flags of every subcommand of `countersign sandbox`. */
export interface ActionFlags extends SandboxApiFlags {
  readonly json?: boolean | undefined;
}

/** What somebody does to a sandbox that runs; `path` is where, with the argument in the place of `:id`. */
export interface SandboxAction {
  readonly name: string;
  readonly description: string;
  readonly path: string;
  /** A second argument, and the member of the body that it is. */
  readonly second?: { readonly name: string; readonly member: string } | undefined;
}

const status = { name: "status", member: "status" };

/** The subcommands of `countersign sandbox`: each is one request. */
const sandboxActions: readonly SandboxAction[] = [
  {
    name: "buyer",
    description: "change the status of a buyer",
    path: "/sandbox/buyers/:id/status",
    second: status,
  },
  {
    name: "seller",
    description: "change the status of a seller",
    path: "/sandbox/sellers/:id/status",
    second: status,
  },
  {
    name: "payment-request",
    description: "create a payment request",
    path: "/sandbox/payment-requests",
    second: { name: "date", member: "due_date" },
  },
  {
    name: "repay",
    description: "repay a payment request in full",
    path: "/sandbox/payment-requests/:id/repay",
  },
  {
    name: "remind",
    description: "remind of a payment request",
    path: "/sandbox/payment-requests/:id/remind",
  },
  { name: "pause", description: "send a delivery no more for now", path: "/sandbox/deliveries/:id/pause" },
  { name: "continue", description: "go on with a paused delivery", path: "/sandbox/deliveries/:id/continue" },
  { name: "drop", description: "give a pending delivery up", path: "/sandbox/deliveries/:id/drop" },
  {
    name: "spoil",
    description: "send a delivery once with its body, signature or password spoilt",
    path: "/sandbox/deliveries/:id/spoil",
    second: { name: "part", member: "part" },
  },
];

function actionCommand(action: SandboxAction, io: CommandIo, finish: (code: ExitCode) => void): Command {
  const command = new Command(action.name).description(action.description).argument("<id>");
  if (action.second !== undefined) command.argument(`<${action.second.name}>`);
  return addSandboxFlags(command)
    .option("--json", "print the sandbox's answer, a JSON document, instead of a line")
    .addHelpText("after", actionNotes)
    .action(async () => {
      const { runSandboxAction } = await loadPlaying("sandbox", () => import("../playing/sandbox-action.ts"));
      finish(await runSandboxAction(action, command.args, command.opts<ActionFlags>(), io));
    });
}

function addDeliveryOptions(command: Command): Command {
  return command
    .option("--batch <ms>", "how long events wait for others to share a webhook with", "0")
    .option("--max-events <n>", "events of one webhook at most", "100")
    .option("--duplicate [chance]", "send a delivered webhook once more")
    .option("--reorder [chance]", "hold a webhook back, so that the next one overtakes it")
    .option("--twice-at-once", "send every attempt as two requests at once")
    .option("--drop-connection [chance]", "lose the first answer of a delivery");
}
