import { knownBody } from "@countersign/explain";
import { UsageError } from "../command-io.ts";

/** A request as a file has it. */
export interface CapturedRequest {
  readonly method: string;
  /** As on the wire. */
  readonly target: string;
  readonly rawHeaders: readonly string[];
  /** Undefined where the capture does not have it. */
  readonly body: Uint8Array | undefined;
  readonly scheme: "http" | "https" | undefined;
  /** What is doubtful about the capture, one sentence each. */
  readonly notes: readonly string[];
}

/** In which form a file has a request. */
export type CaptureForm = "raw" | "har" | "curl";

/** What tells which request of a file is meant, and its body where the file has none. */
export interface CaptureChoice {
  readonly from: CaptureForm | undefined;
  /** The number of an entry, from 1, or a part of its URL. */
  readonly entry: string | undefined;
  readonly data: Buffer | undefined;
}

const latin1 = "latin1";

/** Reads the request of a capture. Throws a UsageError. */
export function readCapture(content: Buffer, { from, entry, data }: CaptureChoice): CapturedRequest {
  const form = from ?? formOf(content);
  if (form === "har") return withData(readHar(content, entry), data);
  if (entry !== undefined && form === "raw") throw new UsageError("--entry: a raw request is one");
  return form === "curl" ? readCurl(content, entry, data) : withData(readRaw(content), data);
}

function formOf(content: Buffer): CaptureForm {
  const start = content.toString(latin1, 0, 65_536);
  if (/^\s*(?:\u00ef\u00bb\u00bf)?\{/.test(start)) return "har";
  return /^> [A-Z]+ /m.test(start) ? "curl" : "raw";
}

function withData(request: CapturedRequest, data: Buffer | undefined): CapturedRequest {
  return data === undefined
    ? request
    : { ...request, body: data, notes: lengthNotes(request.rawHeaders, data) };
}

const requestLine = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+) (\S+)(?: HTTP\/[0-9.]+)?\s*$/;

function readRaw(content: Buffer): CapturedRequest {
  const text = content.toString(latin1);
  const end = /\r?\n\r?\n/.exec(text);
  const head = end === null ? text : text.slice(0, end.index);
  const rest = end === null ? Buffer.alloc(0) : content.subarray(end.index + end[0].length);
  const [first = "", ...lines] = head.replace(/^\s+/, "").split(/\r?\n/);
  const line = requestLine.exec(first);
  if (line === null) {
    throw new UsageError("the file is no HTTP request: it begins with no line such as POST /path HTTP/1.1");
  }
  const rawHeaders = headersOf(lines.filter((each) => each.trim() !== ""));
  const { body, notes } = bodyOf(rest, rawHeaders);
  return { method: line[1] ?? "", target: line[2] ?? "", rawHeaders, body, scheme: undefined, notes };
}

function headersOf(lines: readonly string[]): readonly string[] {
  return lines.flatMap((line) => {
    const colon = line.indexOf(":", 1);
    if (colon === -1) throw new UsageError("the file is no HTTP request: a header line has no colon");
    return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
  });
}

function valueOf(rawHeaders: readonly string[], name: string): string | undefined {
  const at = rawHeaders.findIndex((each, index) => index % 2 === 0 && each.toLowerCase() === name);
  return at === -1 ? undefined : rawHeaders[at + 1];
}

/** The content of the rest of a file: unchunked, and without a line end that an editor has put behind it. */
function bodyOf(
  rest: Buffer,
  rawHeaders: readonly string[],
): { readonly body: Buffer; readonly notes: readonly string[] } {
  if (/^chunked$/i.test(valueOf(rawHeaders, "transfer-encoding") ?? "")) {
    const body = unchunked(rest);
    return body === undefined
      ? {
          body: rest,
          notes: ["The body is not in chunks, though Transfer-Encoding says so; it is taken as it stands."],
        }
      : { body, notes: [] };
  }
  const length = lengthOf(rawHeaders);
  const excess = length === undefined ? 0 : rest.length - length;
  const isLineEnd = excess > 0 && excess <= 2 && /^\r?\n$/.test(rest.toString(latin1, length));
  const body = isLineEnd ? rest.subarray(0, length) : rest;
  return { body, notes: lengthNotes(rawHeaders, body) };
}

function lengthOf(rawHeaders: readonly string[]): number | undefined {
  const text = valueOf(rawHeaders, "content-length");
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

function lengthNotes(rawHeaders: readonly string[], body: Uint8Array): readonly string[] {
  const length = lengthOf(rawHeaders);
  if (length === undefined || length === body.length) return [];
  const joined = Buffer.from(body)
    .toString(latin1)
    .replaceAll(/[\r\n]/g, "");
  const hint =
    joined.length === length
      ? " curl's --data takes line ends out of a file; --data-binary sends it as it is."
      : "";
  return [`The body has ${body.length} bytes, and Content-Length says ${length}.${hint}`];
}

function unchunked(rest: Buffer): Buffer | undefined {
  const chunks: Buffer[] = [];
  let at = 0;
  for (;;) {
    const end = rest.indexOf("\r\n", at);
    const size =
      end === -1 ? undefined : /^([0-9a-f]{1,8})(?:;.*)?$/i.exec(rest.toString(latin1, at, end))?.[1];
    if (size === undefined) return undefined;
    const length = Number.parseInt(size, 16);
    if (length === 0) return Buffer.concat(chunks);
    if (end + 2 + length > rest.length) return undefined;
    chunks.push(rest.subarray(end + 2, end + 2 + length));
    at = end + 2 + length + 2;
  }
}

/** The lines behind `> ` of `curl -v`, the last request where there are several. */
function readCurl(content: Buffer, entry: string | undefined, data: Buffer | undefined): CapturedRequest {
  const sent = content
    .toString(latin1)
    .split(/\r?\n/)
    .filter((line) => line.startsWith(">"))
    .map((line) => line.slice(2).trimEnd());
  const requests: string[][] = [];
  for (const line of sent) {
    if (requestLine.test(line) && / HTTP\//.test(line)) requests.push([line]);
    else if (line !== "") requests.at(-1)?.push(line);
  }
  const wanted = entry === undefined ? requests.length : numberOf(entry, requests.length);
  const [first = "", ...lines] = requests[wanted - 1] ?? [];
  const line = requestLine.exec(first);
  if (line === null)
    throw new UsageError("the file is no output of curl -v: it has no line such as > POST /path HTTP/1.1");
  const rawHeaders = headersOf(lines);
  const request = { method: line[1] ?? "", target: line[2] ?? "", rawHeaders, body: data };
  const body = knownBody(request);
  const notes = body === undefined ? [withoutBody("curl -v does")] : lengthNotes(rawHeaders, body);
  return { ...request, body, scheme: undefined, notes };
}

function withoutBody(capture: string): string {
  return `${capture} not show the body; give its file by --data.`;
}

function numberOf(entry: string, count: number): number {
  const number = /^\d{1,6}$/.test(entry) ? Number(entry) : Number.NaN;
  if (number >= 1 && number <= count) return number;
  throw new UsageError(`--entry: expected a number from 1 to ${count}`);
}

function readHar(content: Buffer, entry: string | undefined): CapturedRequest {
  let document: unknown;
  try {
    document = JSON.parse(content.toString("utf8").replace(/^\ufeff/, ""));
  } catch {
    throw new UsageError("the file is no HAR: it is not JSON");
  }
  const entries = listOf(memberOf(memberOf(document, "log"), "entries")).map((each) =>
    memberOf(each, "request"),
  );
  if (entries.length === 0) throw new UsageError("the file is no HAR, or has no entries");
  const request = chosenEntry(entries, entry);
  const url = textOf(request, "url");
  const parts = /^(https?):\/\/([^/?#]*)([^#]*)/.exec(url);
  if (parts === null) throw new UsageError("the entry of the HAR has no URL of http or https");
  const [, scheme = "", authority = "", rest = ""] = parts;
  const headers = listOf(memberOf(request, "headers")).flatMap((header) => [
    textOf(header, "name"),
    textOf(header, "value"),
  ]);
  const pseudo = headers.filter((_, index) => !(headers[index - (index % 2)] ?? "").startsWith(":"));
  const rawHeaders = valueOf(pseudo, "host") === undefined ? ["Host", authority, ...pseudo] : pseudo;
  const captured = {
    method: textOf(request, "method"),
    target: rest === "" ? "/" : rest.startsWith("?") ? `/${rest}` : rest,
    rawHeaders,
    body: postedBody(memberOf(request, "postData")),
  };
  const body = knownBody(captured);
  const notes = body === undefined ? [withoutBody("The HAR does")] : lengthNotes(rawHeaders, body);
  return { ...captured, body, scheme: scheme === "http" ? "http" : "https", notes };
}

function chosenEntry(requests: readonly unknown[], entry: string | undefined): unknown {
  if (entry !== undefined && /^\d+$/.test(entry)) return requests[numberOf(entry, requests.length) - 1];
  if (entry === undefined && requests.length === 1) return requests[0];
  if (entry === undefined) {
    const signed = requests.filter((request) => hasSignature(request));
    if (signed.length === 1) return signed[0];
    throw new UsageError(
      `the HAR has ${requests.length} entries; choose one by --entry, a number from 1 or a part of its URL`,
    );
  }
  const found = requests.filter((request) => textOf(request, "url").includes(entry));
  if (found.length === 1) return found[0];
  throw new UsageError(
    `--entry: ${found.length} of ${requests.length} URLs contain this text; give a number from 1`,
  );
}

function hasSignature(request: unknown): boolean {
  return listOf(memberOf(request, "headers")).some(
    (header) => textOf(header, "name").toLowerCase() === "signature-input",
  );
}

function postedBody(postData: unknown): Buffer | undefined {
  const text = memberOf(postData, "text");
  if (typeof text !== "string") return undefined;
  return Buffer.from(text, memberOf(postData, "encoding") === "base64" ? "base64" : "utf8");
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined;
}

function textOf(value: unknown, name: string): string {
  const text = memberOf(value, name);
  return typeof text === "string" ? text : "";
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
