// node site/scripts/record.mjs: runs `npm start -- --once` and keeps what it prints, with its times, as an asciinema recording
// (version 2 of the format). Run it when the demo has changed; a test compares its cases with those of the demo.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { root, site } from "./source.mjs";

const columns = 60;
const started = performance.now();
const events = [];
const child = spawn(process.execPath, ["scripts/start.mjs", "--once"], {
  cwd: root,
  stdio: ["ignore", "pipe", "inherit"],
  env: { ...process.env, NO_COLOR: "1", COLUMNS: String(columns) },
});
child.stdout.setEncoding("utf8").on("data", (text) => {
  const seconds = Number(((performance.now() - started) / 1000).toFixed(3));
  events.push([seconds, "o", text.replaceAll("\n", "\r\n")]);
});
const [code] = await once(child, "close");
if (code !== 0) throw new Error(`npm start -- --once ended with ${code}`);
const lines = events
  .map(([, , text]) => text)
  .join("")
  .trimEnd()
  .split("\r\n");
const header = { version: 2, width: columns, height: lines.length + 2, title: "npm start -- --once" };
const all = [header, [0, "o", "$ npm start -- --once\r\n"], ...events];
writeFileSync(
  path.join(site, "recordings", "demo.cast"),
  `${all.map((one) => JSON.stringify(one)).join("\n")}\n`,
);
console.log(`${events.length} pieces, ${lines.length} lines, ${events.at(-1)[0]} seconds`);
