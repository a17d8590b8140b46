// An endpoint's server and its bare route's, each in a process of its own, and the requests that they are sent.
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { sendAll, serializeRequest } from "./load.mjs";
import { createSigner, path as payoutPath } from "./signer.mjs";
import { createWebhookSender, path as webhookPath } from "./webhook-sender.mjs";

const connections = 64;
const ownApps = fileURLToPath(new URL("apps.mjs", import.meta.url));

/** What a measure of the payout endpoint needs: the kinds of app in apps.mjs, their secrets, and `requests(count)`, new ones. */
export function payoutTraffic() {
  const signer = createSigner();
  const { base, signature } = signer.next();
  const secrets = {
    publicKeyPem: signer.publicKeyPem,
    base: base.toString("base64"),
    signature: signature.toString("base64"),
  };
  return {
    kinds: { bare: "barePayout", guarded: "payout", chain: "payoutChain" },
    secrets,
    requests: (count) => newRequests(count, payoutPath, signer.next),
  };
}

export function webhookTraffic() {
  const { secrets, next } = createWebhookSender();
  return {
    kinds: { bare: "bareWebhook", guarded: "webhook" },
    secrets,
    requests: (count) => newRequests(count, webhookPath, next),
  };
}

/** Starts one app; `file` is the apps.mjs that builds it, `node` another Node than this one, `cores` what taskset lets it use. */
export async function startServer(kind, secrets, { file = ownApps, stores = "memory", node, cores } = {}) {
  const child = fork(fileURLToPath(new URL("server.mjs", import.meta.url)), [file, kind, stores], {
    // A line on stderr for each refusal is what a bare route has not.
    env: { ...process.env, NODE_ENV: "test", COUNTERSIGN_STDERR: "off" },
    ...executable(node ?? process.execPath, cores),
  });
  const { port } = await ask(child, secrets);
  return {
    port,
    /** Resolves to requests per second. */
    load: (requests, status) => sendAll(port, requests, connections, status),
    /** Resolves to the microseconds of CPU time, user and system, that a request costs the server's process. */
    async cpuOf(requests) {
      const before = (await ask(child, "cpu")).cpu;
      await sendAll(port, requests, connections);
      const after = (await ask(child, "cpu")).cpu;
      return (after.user + after.system - before.user - before.system) / requests.length;
    },
    /** Resolves to the CPU profile of the server's main thread while it answered. */
    async profileOf(requests) {
      await ask(child, "profile");
      await sendAll(port, requests, connections);
      return (await ask(child, "profiled")).profile;
    },
    close: () => child.disconnect(),
  };
}

function executable(node, cores) {
  return cores === undefined ? { execPath: node } : { execPath: "taskset", execArgv: ["-c", cores, node] };
}

function newRequests(count, path, next) {
  return Array.from({ length: count }, () => serializeRequest(path, next()));
}

function ask(child, message) {
  return new Promise((resolve, reject) => {
    const ended = (code) => reject(new Error(`a server of the benchmark ended with ${code}`));
    child.once("exit", ended);
    child.once("message", (answer) => {
      child.off("exit", ended);
      resolve(answer);
    });
    child.send(message);
  });
}
