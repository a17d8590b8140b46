export { rawBody } from "./middleware.ts";
export { defaultLimitBytes, resolveLimitBytes, type RawBodyOptions } from "./options.ts";
export { capturedRawBody, captureRawBody } from "./captured.ts";
export { readRawBody } from "./read-raw-body.ts";
export { fieldLines } from "./field-lines.ts";
export { jsonBody, type JsonBodyOptions } from "./json-body.ts";
export { parseJsonBytes, type ParsedJson } from "./json-text.ts";
export { isJsonMediaType } from "./media-type.ts";
export { numberTextAt } from "./number-text.ts";
