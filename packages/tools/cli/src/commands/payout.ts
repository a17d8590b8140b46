import { Command, Option } from "commander";
import type { CommandIo, Finish } from "../command-io.ts";
import { allowHttpOption, collect, forwardedForOption } from "../input.ts";
import { loadPlaying } from "../load-package.ts";
import type { PayoutFlags } from "../playing/payout.ts";

const examples = `
Examples:
  countersign payout --url http://127.0.0.1:3000/api/v1/transaction \\
    --key test.private.pem --keyid test
  countersign payout --url … --key … --keyid test --file body.json --duplicate
  countersign payout --url … --key … --keyid test --tamper body --json
  countersign payout --url … --key … --keyid test \\
    --iban DE02120300000000202051 --expect 400

Exit codes:
  0  answered as expected   1  answered otherwise   2  usage   3  no answer
  Expected is 2xx; with --tamper, --expired and --future 401; of the second
  request 401 with --replay and 409 with --duplicate; with --concurrent one 2xx
  and for the rest 409 or 503.
`;

export function payoutCommand(io: CommandIo, finish: Finish): Command {
  const command = new Command("payout")
    .description(
      "sign one payout instruction and send it, as it should be or in one way that must be refused",
    )
    .requiredOption("--url <url>", "payout endpoint; its path is sent and signed exactly as given")
    .requiredOption("--key <file>", "Ed25519 private key (PKCS#8 PEM)")
    .requiredOption("--keyid <id>", "name of the key as the platform knows it")
    .option("--file <file>", "body, sent byte for byte (default: an instruction of the options below)");
  for (const [flags, description, byDefault] of fields)
    command.addOption(new Option(flags, description).default(byDefault, byDefault).conflicts("file"));
  const variants = variantOptions();
  const names = variants.map((option) => option.name());
  for (const option of variants)
    command.addOption(option.conflicts(names.filter((name) => name !== option.name())));
  return command
    .option(
      "--target <target>",
      "request target on the wire, when it is to differ from the signed path of --url",
    )
    .addOption(forwardedForOption())
    .option("--header <field>", "further header field 'name: value'; repeatable", collect)
    .option("--timeout <ms>", "time for the whole exchange", "10000")
    .option("--ca <file>", "issuer certificates (PEM) of an https endpoint")
    .option("--local-address <ip>", "local address to send from")
    .addOption(allowHttpOption())
    .option("--expect <statuses>", "statuses that count as expected, such as 200,409 or 2xx")
    .option("--save <file>", "write the request there as it was sent, for countersign explain")
    .option("--json", "print one JSON document instead of text")
    .addHelpText("after", tamperedTexts + examples)
    .action(async (flags: PayoutFlags) => {
      const { runPayout } = await loadPlaying("payout", () => import("../playing/payout.ts"));
      finish(await runPayout(flags, io));
    });
}

type Field = readonly [flags: string, description: string, byDefault?: string];

const fields: readonly Field[] = [
  ["--idempotency-key <key>", "<operation_key>.<from_id>.<to_id> (default: a fresh one)"],
  ["--business-id <id>", "business_id", "business-1"],
  ["--iban <iban>", "beneficiary.iban", "DE89370400440532013000"],
  ["--bic <bic>", "beneficiary.bic", "COBADEFFXXX"],
  ["--name <name>", "beneficiary.name", "Example Trading GmbH"],
  ["--amount <json>", "amount, a JSON object", '{"value":"10.00","currency":"EUR"}'],
  ["--reference <text>", "reference text of the transfer", "Funding payout, sample"],
  ["--reference-field <name>", "name of the field that holds the reference text", "reference"],
];

// Importing the sandbox's own list would load it for every command line.
const tampered = [
  ...(["body", "digest", "signature", "path"] as const),
  ...([
    "prefix-removed",
    "prefix-added",
    "charset-added",
    "body-re-serialised",
    "created-milliseconds",
  ] as const),
] satisfies PayoutFlags["tamper"][];

const tamperedTexts = `
Parts of --tamper:
  body, digest, signature  changed after signing; with digest the body too
  path                     signed is another path
  prefix-removed           signed is /payments before the path, as if a proxy
                           had removed that
  prefix-added             signed is the path without its first segment, as if
                           a proxy had added that
  charset-added            Content-Type has a charset that is not signed
  body-re-serialised       the body is parsed and serialised again after signing
  created-milliseconds     created and expires are in milliseconds
  What countersign explain says of such a request is printed with the answer.
`;

function variantOptions(): readonly Option[] {
  return [
    new Option("--tamper <part>", "spoil one part of the signed request").choices(tampered),
    new Option("--expired", "sign as of two minutes ago"),
    new Option("--future", "sign as of two minutes ahead"),
    new Option("--replay", "send the same signed request twice"),
    new Option("--duplicate", "send the same instruction twice, signed anew with a fresh nonce"),
    new Option("--concurrent <n>", "send the same instruction n times at once, each signed anew"),
  ];
}
