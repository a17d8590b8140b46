// npm run dashboard:check: what the dashboard and the alert rules of packages/observe/prometheus ask, answered by a Prometheus that scrapes a
// platform under traffic.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ensureReady, runScript, SetupError } from "../../scripts/setup.mjs";
import { prometheusServer, reportMissing } from "../support/servers/server-binaries.mjs";
import { askPanels, linesByDefault } from "./panels.mjs";
import { startPrometheus } from "./prometheus-server.mjs";

// What is refused on purpose.
process.env["COUNTERSIGN_STDERR"] ??= "off";
const fileOf = (name) => fileURLToPath(new URL(`../../packages/observe/observe/${name}`, import.meta.url));

// Seconds; Grafana's $__rate_interval is at least four scrapes. By two names the platform is two processes for Prometheus, as in
// production: what a panel does not sum over them is there twice.
const run = { seconds: 22, outagesAt: [9], rateInterval: 5, hosts: ["127.0.0.1", "localhost"] };

runScript(async () => {
  const binary = prometheusServer();
  if (binary === undefined) {
    reportMissing("prometheus", "nobody asks what the dashboard and the alert rules ask.");
    return;
  }
  testRules(path.join(path.dirname(binary), "promtool"));
  ensureReady();
  const dashboard = JSON.parse(readFileSync(fileOf("dashboard.json"), "utf8"));
  const { asked, rules } = await observe(binary, dashboard);
  const { provoked } = await import("./scene.mjs");
  const faults = [...panelFaults(asked), ...alertFaults(rules, provoked)];
  for (const state of ["firing", "pending", "inactive"])
    console.log(`alerts ${state}: ${namesIn(rules, state).join(", ") || "none"}`);
  if (faults.length > 0) throw new SetupError(faults.join("\n"));
  console.log(`dashboard: ${asked.length} panels with data, ${rules.length} alert rules`);
});

/** The rules at times that no scene lasts to; promtool comes with Prometheus. */
function testRules(promtool) {
  const file = fileURLToPath(new URL("alert-rules.yml", import.meta.url));
  const { status, stdout, stderr, error } = spawnSync(promtool, ["test", "rules", file], {
    encoding: "utf8",
  });
  if (status !== 0) throw new SetupError(`alert-rules.yml: ${error?.message ?? stdout + stderr}`);
}

async function observe(binary, dashboard) {
  const { startScene } = await import("./scene.mjs");
  const scene = await startScene(run);
  const rules = fileOf("alerts.yml");
  const start = Date.now() / 1000;
  try {
    const targets = run.hosts.map((host) => `${host}:${scene.port}`);
    const prometheus = await startPrometheus({ binary, targets, rules });
    try {
      await sleep(run.seconds * 1000);
      const range = { start, end: Date.now() / 1000, step: 1 };
      const variables = {
        __rate_interval: `${run.rateInterval}s`,
        __interval: "1s",
        __range: `${run.seconds}s`,
        lines: String(linesByDefault),
      };
      const asked = await askPanels(dashboard, { prometheus, range, variables });
      return { asked, rules: await prometheus.alertRules() };
    } finally {
      await prometheus.close();
    }
  } finally {
    await scene.close();
  }
}

function panelFaults(asked) {
  return asked.flatMap(({ panel, faults }) => faults.map((fault) => `panel ${panel.title}: ${fault}`));
}

const namesIn = (rules, wanted) => rules.filter(({ state }) => state === wanted).map(({ name }) => name);

function alertFaults(rules, provoked) {
  const broken = rules.filter(({ health }) => health !== "ok");
  return [
    ...broken.map(({ name, lastError }) => `alert ${name}: ${lastError}`),
    ...Object.entries(provoked).flatMap(([state, names]) =>
      names
        .filter((name) => !namesIn(rules, state).includes(name))
        .map((name) => `alert ${name}: not ${state}`),
    ),
  ];
}
