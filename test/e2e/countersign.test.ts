import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "@jest/globals";
import { capture, killAll } from "../../examples/platform/test/platform-process.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

afterEach(killAll);

test("npm run countersign -- sandbox ends with npm", async () => {
  const npm = capture("npm", ["run", "--silent", "countersign", "--", "sandbox", "--port", "0"], {
    cwd: root,
    env: { COUNTERSIGN_API_KEY: "test-api-key" },
  });
  const url = await until(() => /http:\/\/127\.0\.0\.1:\d+/.exec(npm.stdout())?.[0]);
  expect(await answers(url)).toBe(true);
  // npm alone, as a service manager does that knows only what it started.
  npm.child.kill("SIGTERM");
  await until(async () => ((await answers(url)) ? undefined : true));
}, 30_000);

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/sandbox/deliveries`)).status === 401;
  } catch {
    return false;
  }
}

async function until<T>(look: () => T | undefined | Promise<T | undefined>): Promise<T> {
  const end = Date.now() + 20_000;
  while (Date.now() < end) {
    const found = await look();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error("it did not happen in time");
}
