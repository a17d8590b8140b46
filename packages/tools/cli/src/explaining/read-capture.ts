import { fieldLines } from "@countersign/core/internal";
import { knownBody, type ExplainedRequest } from "../explain/index.ts";
import { UsageError } from "../command-io.ts";

export interface CapturedRequest extends ExplainedRequest {
  /** What is doubtful about the capture, one sentence each. */
  readonly notes: readonly string[];
}

const latin1 = "latin1";

/** `data` replaces the body. Throws a UsageError. */
export function readCapture(content: Buffer, data: Buffer | undefined): CapturedRequest {
  const isCurl = /^> [A-Z]+ /m.test(content.toString(latin1, 0, 65_536));
  const request = isCurl ? readCurl(content) : readRaw(content);
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
  return { method: line[1] ?? "", target: line[2] ?? "", rawHeaders, body, notes };
}

function headersOf(lines: readonly string[]): readonly string[] {
  return lines.flatMap((line) => {
    const colon = line.indexOf(":", 1);
    if (colon === -1) throw new UsageError("the file is no HTTP request: a header line has no colon");
    return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
  });
}

/** Without the line end that an editor has added. */
function bodyOf(
  rest: Buffer,
  rawHeaders: readonly string[],
): { readonly body: Buffer | undefined; readonly notes: readonly string[] } {
  if (fieldLines({ rawHeaders }, "transfer-encoding").length > 0)
    return {
      body: undefined,
      notes: ["The body is encoded (Transfer-Encoding); give its content by --data."],
    };
  const length = lengthOf(rawHeaders);
  const excess = length === undefined ? 0 : rest.length - length;
  const isLineEnd = excess > 0 && excess <= 2 && /^\r?\n$/.test(rest.toString(latin1, length));
  const body = isLineEnd ? rest.subarray(0, length) : rest;
  return { body, notes: lengthNotes(rawHeaders, body) };
}

function lengthOf(rawHeaders: readonly string[]): number | undefined {
  const [text] = fieldLines({ rawHeaders }, "content-length");
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

function lengthNotes(rawHeaders: readonly string[], body: Uint8Array): readonly string[] {
  const length = lengthOf(rawHeaders);
  if (length === undefined || length === body.length) return [];
  return [`The body has ${body.length} bytes, and Content-Length says ${length}.`];
}

/** Reads the lines of `curl -v` that begin with `> `; of several requests the last. */
function readCurl(content: Buffer): CapturedRequest {
  const sent = content
    .toString(latin1)
    .split(/\r?\n/)
    .filter((line) => line.startsWith(">"))
    .map((line) => line.slice(2).trimEnd());
  const start = sent.map((line) => requestLine.test(line) && / HTTP\//.test(line)).lastIndexOf(true);
  const [, method = "", target = ""] = requestLine.exec(sent[start] ?? "") ?? [];
  if (method === "")
    throw new UsageError("the file is no output of curl -v: it has no line such as > POST /path HTTP/1.1");
  const rawHeaders = headersOf(sent.slice(start + 1).filter((line) => line !== ""));
  const body = knownBody({ method, target, rawHeaders });
  const notes =
    body === undefined
      ? ["curl -v does not show the body; give its file by --data."]
      : lengthNotes(rawHeaders, body);
  return { method, target, rawHeaders, body, notes };
}
