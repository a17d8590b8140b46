// libsql makes its SqliteError of a function with Error's prototype: `types.isNativeError` is false for it. Whatever tells of an error tells
// its message all the same.
import { inspect, types } from "node:util";
import { GuardError, OptionError } from "@countersign/core";
import { TaskError } from "@countersign/idempotency/work";
import { publishFailure, warnOfError } from "@countersign/core/internal";
import { jwksKeys } from "@countersign/http-signature-verify";
import { consoleLog } from "@countersign/observe/log";
import { ServiceClientError } from "countersign/client";
import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import Database from "libsql";
import { recordError } from "../packages/tools/devtools/src/inspector/recorded-error.ts";

const error = ((): unknown => {
  try {
    new Database(":memory:").prepare("SELECT * FROM payouts");
  } catch (thrown) {
    return thrown;
  }
  throw new Error("libsql finds a table that is not there");
})();
const message = /no such table: payouts/;

const written: string[] = [];
beforeEach(() => {
  written.length = 0;
  delete process.env["COUNTERSIGN_STDERR"];
  jest.spyOn(console, "error").mockImplementation((line: unknown) => void written.push(String(line)));
  jest.spyOn(process, "emitWarning").mockImplementation((line: unknown) => void written.push(String(line)));
});
afterEach(() => {
  process.env["COUNTERSIGN_STDERR"] = "off";
  jest.restoreAllMocks();
});

test("is the error that these tests are about", () => {
  expect(error).toMatchObject({ message: expect.stringMatching(message) });
  expect(types.isNativeError(error)).toBe(false);
});

test.each<[string, () => unknown]>([
  [
    "a line on stderr",
    () => publishFailure({ guard: "example", code: "foreign-error", message: "it failed", error }),
  ],
  [
    "a line on stderr of a cause",
    () => {
      const caused = new Error("the store failed", { cause: error });
      publishFailure({ guard: "example", code: "foreign-cause", message: "it failed", error: caused });
    },
  ],
  ["a process warning", () => warnOfError("example", "caught what onReject threw", error)],
  [
    "the console's log",
    () => {
      const line = (text: string): void => void written.push(text);
      const end = consoleLog({ console: { info: line, warn: line, error: line } });
      publishFailure({ guard: "example", code: "foreign-error", message: "it failed", error });
      end();
    },
  ],
  ["the inspector", () => written.push(JSON.stringify(recordError(0, "handler", error)))],
  [
    "a key store that cannot be refreshed",
    async () => {
      const store = jwksKeys("https://keys.example/jwks", { fetch: () => Promise.reject(error) });
      await store.ready().catch((thrown: unknown) => written.push(String(thrown)));
      store.close();
    },
  ],
])("has its message told by %s", async (_name, tell) => {
  await tell();
  expect(written.join("\\n")).toMatch(message);
  expect(written.join("\\n")).not.toContain("no Error");
});

test.each<[string, (cause: unknown) => Error]>([
  ["OptionError", (cause) => new OptionError("example", { option: "a", what: "is bad", cause })],
  ["GuardError", (cause) => new GuardError({ status: 400, code: "example", message: "it is bad", cause })],
  ["TaskError", (cause) => new TaskError("it is bad", { cause })],
  ["ServiceClientError", (cause) => new ServiceClientError("aborted", "it is bad", { cause })],
])("prints the cause of a %s, and none where there is none", (_name, make) => {
  expect(inspect(make(error))).toContain("[cause]");
  expect(inspect(make(undefined))).not.toContain("[cause]");
});
