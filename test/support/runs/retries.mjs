import { jest } from "@jest/globals";
import process from "node:process";

// In CI a test that failed runs once more when the others of its file have ended: a server or a disk that stood still looks like a
// fault of the code. `.ci/sum.mjs` names each of them and bears only a few.
jest.retryTimes(Number(process.env["TEST_RETRIES"] ?? 0), { logErrorsBeforeRetry: true });
