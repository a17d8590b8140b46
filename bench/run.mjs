// npm run bench: installs this folder's own dependencies once, then prints ratios. Nothing here is asserted by a test.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ensureReady, npmCommand } from "../scripts/setup.mjs";

ensureReady();
const folder = fileURLToPath(new URL(".", import.meta.url));
if (!existsSync(new URL("node_modules", import.meta.url))) {
  const { file, args, shell } = npmCommand(process.env, process.platform, ["ci"]);
  const { status } = spawnSync(file, args, { cwd: folder, stdio: ["ignore", 2, 2], shell });
  if (status !== 0) process.exit(1);
}

const { verificationRatio } = await import("./verify.mjs");
const { chainRatio } = await import("./chain.mjs");
const { payoutHttpRatio, webhookHttpRatio } = await import("./http.mjs");

console.log(`Node ${process.version}`);
for (const measure of [verificationRatio, chainRatio, payoutHttpRatio, webhookHttpRatio]) {
  const { name, ratio, target, met } = await measure();
  console.log(
    `${name.padEnd(42)} ${ratio.toFixed(3)}   ${target.padEnd(8)} ${met(ratio) ? "met" : "NOT MET"}`,
  );
}
