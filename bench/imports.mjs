// How long an import takes of what users import, in a process of its own each: the least of many, since whatever else runs only adds.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const runs = 15;
const middlewares = [
  "raw-body",
  "content-digest",
  "http-signature-verify",
  "ip-allowlist",
  "idempotency-guard",
  "webhook-basic-auth",
  "webhook-hmac",
];

export function importTimes() {
  return [
    ...middlewares.map((name) => importTime(`@countersign/${name}`, 60)),
    importTime("countersign/payout", 120),
    importTime("countersign/webhooks", 120),
  ];
}

function importTime(name, mostMs) {
  const script = `const startedAt = performance.now(); await import("${name}"); console.log(performance.now() - startedAt)`;
  const cwd = fileURLToPath(new URL(".", import.meta.url));
  const took = Array.from({ length: runs }, () => {
    const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
      cwd,
      encoding: "utf8",
    });
    return Number(stdout);
  });
  return {
    name: `import of ${name}, ms`,
    ratio: Math.min(...took),
    target: `< ${mostMs}`,
    met: (ms) => ms < mostMs,
  };
}
