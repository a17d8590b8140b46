// node scripts/paths.mjs [--files]: in how many of our modules is a function called while one payout, in either mode, or one webhook
// of one event is received, from its arrival to the answer, by Express and on SQLite. This process sends, a child receives; its first request,
// which also does what is done once, is not counted. A figure to look at, not a limit.
import { fork } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import { Session } from "node:inspector/promises";
import { fileURLToPath } from "node:url";
import { createStores } from "@countersign/store-sql";
import Database from "libsql";
import { apps } from "../bench/apps.mjs";
import { createSigner, path as payoutPath } from "../bench/signer.mjs";
import { createWebhookSender, path as webhookPath } from "../bench/webhook-sender.mjs";

const senders = {
  payout: { target: payoutPath, create: createSigner },
  payoutInTransaction: { target: payoutPath, create: createSigner },
  webhook: { target: webhookPath, create: createWebhookSender },
};

const session = new Session();

if (process.send === undefined) {
  await measure("payout");
  await measure("payoutInTransaction");
  await measure("webhook");
} else await receive(process.argv[2]);

async function measure(kind) {
  const { target, create } = senders[kind];
  const sender = create();
  const receiver = fork(fileURLToPath(import.meta.url), [kind]);
  const ask = async (message) => {
    receiver.send(message);
    return (await once(receiver, "message"))[0];
  };
  const { port } = await ask(sender.secrets ?? { publicKeyPem: sender.publicKeyPem });
  await post(port, target, sender.next());
  await ask("begin");
  await post(port, target, sender.next());
  const { files } = await ask("end");
  receiver.disconnect();
  console.log(`${kind.padEnd(20)} ${files.length} files`);
  if (process.argv.includes("--files")) console.log(files.map((file) => `  ${file}`).join("\n"));
}

async function post(port, target, { body, headers }) {
  const options = { host: "127.0.0.1", port, path: target, method: "POST", agent: false };
  const sent = request({ ...options, headers: { ...headers, "content-length": Buffer.byteLength(body) } });
  sent.end(body);
  const [answer] = await once(sent, "response");
  await once(answer.resume(), "end");
  if (answer.statusCode !== 200) throw new Error(`${target} answered ${answer.statusCode}`);
}

async function receive(kind) {
  const [secrets] = await once(process, "message");
  const server = apps[kind](secrets, sqliteStores).listen(0, "127.0.0.1");
  await once(server, "listening");
  process.on("disconnect", () => process.exit(0));
  process.on("message", async (message) => {
    if (message === "begin") await begin();
    process.send({ files: filesOf(await session.post("Profiler.takePreciseCoverage")) });
  });
  process.send({ port: server.address().port });
}

function sqliteStores(options) {
  return createStores({ database: new Database(":memory:"), ...options });
}

async function begin() {
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
}

function filesOf({ result }) {
  return result
    .filter(({ functions }) => functions.some(({ ranges }) => ranges[0].count > 0))
    .map(({ url }) => /\/packages\/(.+\/dist\/.+)$/.exec(url)?.[1])
    .filter((file) => file !== undefined)
    .toSorted();
}
