import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { testAuthority } from "@countersign/test-support/servers/certificates.ts";
import { clientOf, endpoint, failureOf, startService, type TestService } from "./service.ts";

const authority = testAuthority();
const directory = mkdtempSync(join(tmpdir(), "countersign-client-"));
const caFile = join(directory, "ca.pem");
let service: TestService;
beforeAll(async () => {
  writeFileSync(caFile, authority.cert);
  service = await startService(authority.issue());
});
beforeEach(() => {
  service.received.length = 0;
});
afterAll(async () => {
  await service.close();
  rmSync(directory, { recursive: true, force: true });
});

describe("over https", () => {
  test("sends nothing to a server without a trusted certificate, and tries once", async () => {
    const error = await failureOf(
      clientOf(service.baseUrl, { dangerouslyAllowHttp: false }).createWebhookEndpoint(endpoint),
    );
    expect(error).toMatchObject({ code: "certificate-rejected" });
    expect(service.received).toHaveLength(0);
  });

  test("trusts the issuers of NODE_EXTRA_CA_CERTS, and leaves no timer that keeps the process", async () => {
    expect(await registerInChild({ NODE_EXTRA_CA_CERTS: caFile })).toBe(
      '{"status":201,"body":{"id":"endpoint-1"}} 0',
    );
    expect(service.received).toHaveLength(1);
  });

  test("refuses to work where the verification of certificates is turned off", async () => {
    expect(await registerInChild({ NODE_TLS_REJECT_UNAUTHORIZED: "0" })).toMatch(
      /^TypeError createServiceClient: NODE_TLS_REJECT_UNAUTHORIZED=0/,
    );
    expect(service.received).toHaveLength(0);
  });
});

/** What a process of its own prints: Node reads these variables when it starts. */
function registerInChild(env: Readonly<Record<string, string>>): Promise<string> {
  const program = `
    import { createServiceClient } from "@countersign/service-client";
    try {
      const client = createServiceClient({ baseUrl: ${JSON.stringify(service.baseUrl)}, apiKey: "test-api-key" });
      const answer = JSON.stringify(await client.createWebhookEndpoint(${JSON.stringify(endpoint)}));
      const timers = process.getActiveResourcesInfo().filter((resource) => resource === "Timeout");
      console.log(answer, timers.length);
    } catch (error) {
      console.log(error.name, error.message);
    }`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    cwd: fileURLToPath(new URL(".", import.meta.url)),
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "ignore"],
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  return new Promise((resolve) => child.on("close", () => resolve(output.trim())));
}
