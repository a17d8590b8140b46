// What express.json() needs beside it, for projects in which only direct dependencies can be imported (pnpm).
export { capturedRawBody, parseJsonBody } from "@countersign/core/internal";
export { readBody, type RawBodyCode } from "./check.ts";
export { captureRawBody, jsonBody, rawBody } from "./middleware.ts";
export { numberTextAt, textAt } from "./number-text.ts";
