// The commands of site/pages/guide/operate.md, in a shell: a dozen processes.
import { spawnSync } from "node:child_process";
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { fileText } from "../../../../site/scripts/file-text.mjs";
import { builtCli, temporaryFolder } from "./cli-bench.ts";
import { complete, engineRows, hold } from "./operator-bench.ts";

const folder = temporaryFolder();

test("the commands of the guide tell what is missing, enter it, and are quiet afterwards", async () => {
  const bench = await engineRows[0]?.open();
  if (bench === undefined) throw new Error("there is no engine");
  try {
    const shell = (region: string) => {
      const commands = fileText("site/snippets/operate.sh", { region });
      const script = commands.replaceAll(
        "npx countersign ",
        `${JSON.stringify(process.execPath)} ${builtCli} `,
      );
      const env = { ...process.env, STORE_URL: bench.url, USER: "anna", LC_ALL: "C" };
      const { status, stdout, stderr } = spawnSync("bash", ["-c", script], {
        cwd: folder,
        env,
        encoding: "utf8",
      });
      return { status, stdout, stderr };
    };
    await complete(bench, "payout:known");
    writeFileSync(join(folder, "paid-since-backup.txt"), "op-1\nknown\nop-2\n");
    expect(shell("restore")).toMatchObject({ status: 0, stderr: "" });
    expect((await bench.idempotency.read("payout:op-2"))?.decision).toMatchObject({ by: "anna" });
    expect(shell("missing")).toEqual({ status: 0, stdout: "", stderr: "" });
    appendFileSync(join(folder, "paid-keys.txt"), "payout:op-3\n");
    expect(shell("missing")).toEqual({ status: 0, stdout: "payout:op-3\n", stderr: "" });
    expect(shell("cron")).toEqual({ status: 0, stdout: "", stderr: "" });
    await bench.tasks?.pause("inbox", { by: "anna", note: "the bank is down" });
    expect(shell("cron")).toMatchObject({ status: 1, stdout: expect.stringContaining("inbox is paused") });
    await hold(bench, "payout:held");
    expect(shell("cron")).toMatchObject({ status: 1, stdout: expect.stringContaining("1 key waits") });
  } finally {
    await bench.close();
  }
});
