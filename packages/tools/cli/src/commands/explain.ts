import { Command } from "commander";
import type { CommandIo, Finish } from "../command-io.ts";
import { collect } from "../input.ts";
import type { ExplainFlags } from "../explaining/run-explain.ts";

const notes = `
A file holds a request as it went over the wire, or what curl -v has printed,
which lacks the body: give it by --data. --key or --keys explain the signature,
--secret-env the HMAC of a webhook; without either, Content-Digest. No secret is
shown. The clock stands at created, unless --now says otherwise.

Examples:
  countersign explain request.http --key service-1=service-1.public.pem
  curl -v … 2>&1 | countersign explain --keys keys.json --data body.json
  WEBHOOK_SECRET=… countersign explain hook.http --secret-env WEBHOOK_SECRET

Exit codes:
  0  it verifies   1  it does not, and this is why   2  usage
`;

export function explainCommand(io: CommandIo, finish: Finish): Command {
  return new Command("explain")
    .description("say why a request is refused, and what its sender has to change")
    .argument("[file]", "raw HTTP request, or output of curl -v (default: standard input)")
    .option("--data <file>", "the body, byte for byte, in place of that of the file")
    .option("--key <keyid=file>", "public key; may be repeated", collect)
    .option("--keys <file>", "public keys: JWK Set, or record of keyid to key")
    .option("--secret-env <name>", "environment variable with a webhook secret; may be repeated", collect)
    .option("--webhook <scheme>", "how the webhook is signed, such as stripe (default: X-Payload-Signature)")
    .option("--components <list>", "components that have to be covered, such as @method,@path")
    .option("--origin <url>", "scheme and server that callers see")
    .option("--path-prefix <path>", "prefix that a proxy takes off the path")
    .option("--signer-base <file>", "the signature base that the signer has made, to be compared")
    .option("--now <seconds>", "the verifier's clock, in Unix seconds (default: created)")
    .option("--json", "print one JSON document instead of text")
    .addHelpText("after", notes)
    .action(async (file: string | undefined, flags: ExplainFlags) => {
      const { runExplain } = await import("../explaining/run-explain.ts");
      finish(await runExplain(file, flags, io));
    });
}
