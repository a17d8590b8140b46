import { Command, Option } from "commander";
import type { CommandIo, Finish } from "../command-io.ts";
import { forwardedForOption } from "../input.ts";
import { loadPlaying } from "../load-package.ts";
import type { SandboxFlags } from "../playing/sandbox.ts";

const notes = `
It prints a line for each delivery as it is sent; times are UTC. A chance is a
number from 0 to 1; without one it is 1. The database holds credentials.

Examples:
  countersign sandbox --port 4000 --speed 1440
  COUNTERSIGN_API_KEY=… countersign sandbox --db sandbox.db --ca authority.pem
  countersign sandbox --batch 2000 --duplicate 0.2 --drop-connection 0.1
  countersign sandbox --key test.private.pem --keyid test
  countersign trigger buyer.status_changed --url http://127.0.0.1:4000

The page's address has a token for this start: who has it acts as the service,
signs with its key too, and sees no key, password or secret. SIGTERM and SIGINT
end it; with --db, what was not delivered goes out after the next start.

Exit codes:
  0  ended by a signal   2  usage, or the port or database cannot be had
`;

export function sandboxCommand(io: CommandIo, finish: Finish): Command {
  const apiKey = "what X-API-KEY has to be (default: a random one, which is printed)";
  return new Command("sandbox")
    .description("run the lending service: its API, the simulation, and webhooks to the endpoints registered")
    .option("--host <address>", "loopback address to listen on", "127.0.0.1")
    .option("--port <port>", "port to listen on; 0 is a free one", "0")
    .addOption(new Option("--api-key <key>", apiKey).env("COUNTERSIGN_API_KEY"))
    .option("--db <file>", "keeps the state; created when missing", ":memory:")
    .option("--allow-http", "accept endpoints at http URLs of other hosts too")
    .option("--speed <factor>", "divides retry delays and the retry period; 1440 makes a day a minute", "1")
    .addOption(forwardedForOption())
    .option("--ca <file>", "issuer certificates (PEM) of https endpoints")
    .option("--no-page", "serve no page at /")
    .option(
      "--payout-url <url>",
      "payout endpoint that the page begins with (default: http://127.0.0.1:3000/api/v1/transaction)",
    )
    .option("--key <file>", "Ed25519 private key (PKCS#8 PEM) of its payouts (default: one that is made up)")
    .option("--keyid <id>", "name of the key as the platform knows it")
    .option("--batch <ms>", "how long events wait for others to share a webhook with", "0")
    .option("--max-events <n>", "events of one webhook at most", "100")
    .option("--duplicate [chance]", "send a delivered webhook once more")
    .option("--reorder [chance]", "hold a webhook back, so that the next one overtakes it")
    .option("--twice-at-once", "send every attempt as two requests at once")
    .option("--drop-connection [chance]", "lose the first answer of a delivery")
    .option("--json", "print the address, and then each delivery, as a JSON document in a line")
    .addHelpText("after", notes)
    .action(async (flags: SandboxFlags) => {
      const { runSandbox } = await loadPlaying("sandbox", () => import("../playing/sandbox.ts"));
      finish(await runSandbox(flags, io));
    });
}
