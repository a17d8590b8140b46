// A Prometheus of one's own, in a temporary folder on a free port of loopback, that scrapes each second.
import { writeFileSync } from "node:fs";
import path from "node:path";
import { endProcess, freePort, privateFolder, startServer } from "../support/servers/private-process.mjs";

/** `rules` is the file with the alert rules, which are evaluated each second too; `targets` have /metrics, by host and port. */
export async function startPrometheus({ binary, targets, rules }) {
  const folder = privateFolder("prometheus");
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const config = path.join(folder.path, "prometheus.json");
  // JSON is YAML.
  writeFileSync(
    config,
    JSON.stringify({
      global: { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" },
      rule_files: [rules],
      scrape_configs: [{ job_name: "platform", static_configs: [{ targets }] }],
    }),
  );
  let child;
  try {
    child = await startServer({
      command: binary,
      args: [
        `--config.file=${config}`,
        `--storage.tsdb.path=${path.join(folder.path, "data")}`,
        `--web.listen-address=127.0.0.1:${port}`,
        "--log.level=warn",
      ],
      folder: folder.path,
      isReady: () => isReady(url),
    });
  } catch (error) {
    folder.remove();
    throw error;
  }
  return {
    /** What a query gives at a time, or over a range of times: `[{ metric, values }]`. Throws with what Prometheus says against it. */
    async query(expr, { start, end, step }) {
      const isRange = start !== undefined;
      const times = isRange ? { start, end, step } : { time: end };
      const form = new URLSearchParams({ query: expr, ...times });
      const { result } = await ask(`${url}/api/v1/query${isRange ? "_range" : ""}`, {
        method: "POST",
        body: form,
      });
      return result.map(({ metric, value, values = [value] }) => ({ metric, values }));
    },
    /** Every alert rule with its `state` (inactive, pending, firing), and `lastError` where it could not be evaluated. */
    async alertRules() {
      const { groups } = await ask(`${url}/api/v1/rules?type=alert`);
      return groups.flatMap((group) => group.rules);
    },
    async close() {
      await endProcess(child, "SIGTERM");
      folder.remove();
    },
  };
}

async function isReady(url) {
  const answer = await fetch(`${url}/-/ready`).catch(() => undefined);
  return answer?.ok === true;
}

async function ask(url, init) {
  const answer = await fetch(url, init);
  const { status, data, error } = await answer.json();
  if (status !== "success") throw new Error(error);
  return data;
}
