import { hash } from "node:crypto";
import { GuardError } from "@countersign/core";
import {
  asBuffer,
  appAnswers,
  capturedRawBody,
  fieldLines,
  hasMethods,
  option,
  optionError,
  readOptions,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core/internal";
import { markCallersApart } from "./answer-callers.ts";
import { fieldName } from "./answer-record.ts";
import type { IdempotencyGuardCode } from "./codes.ts";
import { rawHeadersOf, refuseUncaptured, type MaybeRaw } from "./refusals.ts";

/** Options of {@link idempotencyKeyHeader}; `Native` is the framework's request. */
export interface IdempotencyKeyHeaderOptions<Native> {
  /** The field's name. Default `Idempotency-Key`. */
  readonly header?: string | undefined;
  /** Also takes an unquoted key, as many clients send: 1 to 255 visible ASCII characters but `"`, `,`, `;` and `\`. Default false. */
  readonly bareKeys?: boolean | undefined;
  /**
   * The authenticated caller: each has keys of its own, and nobody gets another's answer. Undefined or an empty string is a TypeError.
   * Default: all callers are one, which `replay` does not accept unless its `callers` says so.
   */
  readonly caller?: ((req: Native) => string | undefined) | undefined;
}

export interface IdempotencyKeyHeaderPreset {
  readonly key: (req: object) => string | undefined;
  readonly fingerprint: (req: object) => string;
  readonly methods: readonly string[];
  readonly inFlightStatus: 409;
  readonly reusedStatus: 422;
}

const factoryName = "idempotencyKeyHeader";

export const headerTable = {
  header: option.own(readHeader, '"Idempotency-Key"'),
  bareKeys: option.boolean(false),
  caller: option.optional(option.call<(req: never) => string | undefined>()),
} satisfies OptionTable<IdempotencyKeyHeaderOptions<never>, unknown>;

// RFC 9651 section 3.3.3, without parameters, of which the draft has none.
const sfString = /^[ \t]*"((?:[ !#-[\]-~]|\\["\\])*)"[ \t]*$/;
const bareKey = /^[ \t]*([!#-+\-./0-:<-[\]-~]{1,255})[ \t]*$/;

/** idempotencyKeyHeader() for any framework. */
export function keyHeaderPreset<Native>(
  options: IdempotencyKeyHeaderOptions<Native>,
): IdempotencyKeyHeaderPreset {
  const { header, bareKeys } = readOptions(factoryName, headerTable, options);
  const { caller } = options;
  const preset: IdempotencyKeyHeaderPreset = {
    key: (req) => {
      const key = readKey(linesOf(req, header), { header, bareKeys });
      if (key === undefined || caller === undefined) return key;
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the guard gives both the same request
      const who: unknown = caller(req as Native);
      if (typeof who === "string" && who !== "") return `${encodeURIComponent(who)}:${key}`;
      const what = appAnswers.isVainPromise(who) ? ", not a promise" : "";
      throw new TypeError(
        `${factoryName}: option caller must return who is asking, a string that is not empty${what}`,
      );
    },
    fingerprint: requestFingerprint,
    methods: ["POST", "PATCH"],
    inFlightStatus: 409,
    reusedStatus: 422,
  };
  if (caller !== undefined) markCallersApart(preset.key);
  return preset;
}

/** Reads a structured-field string (RFC 9651 section 3.3.3), or a bare key; undefined without a line. Else throws a GuardError (400). */
function readKey(
  lines: readonly string[],
  { header, bareKeys }: { readonly header: string; readonly bareKeys: boolean },
): string | undefined {
  const [line] = lines;
  if (line === undefined) return undefined;
  if (lines.length === 1) {
    const text = sfString.exec(line)?.[1]?.replaceAll(/\\(["\\])/g, "$1");
    const key = text ?? (bareKeys ? bareKey.exec(line)?.[1] : undefined);
    if (key !== undefined && key !== "") return key;
  }
  throw new GuardError<IdempotencyGuardCode>({
    status: 400,
    code: "idempotency-key-invalid",
    message:
      `${header} is not exactly one string in quotation marks` +
      (bareKeys
        ? ", nor a key without them"
        : bareKey.test(line)
          ? "; option bareKeys takes one without them"
          : ""),
  });
}

interface AnyRequest extends MaybeRaw {
  readonly method?: unknown;
  readonly headers?: unknown;
  readonly originalUrl?: unknown;
  readonly url?: unknown;
}

function linesOf(req: AnyRequest, name: string): readonly string[] {
  const raw = rawHeadersOf(req);
  if (raw !== undefined) return fieldLines(raw, name.toLowerCase());
  if (hasMethods<Pick<Headers, "get">>(req.headers, "get")) {
    const line = req.headers.get(name);
    return line === null ? [] : [line];
  }
  throw new TypeError(`${factoryName}: the request has no header lines that are known`);
}

/** SHA-256 of method, target and body. Throws a GuardError (500) for a body that nobody captured. */
function requestFingerprint(req: AnyRequest): string {
  const body = capturedRawBody(req) ?? bodyOfNone(req);
  const head = JSON.stringify([req.method, req.originalUrl ?? req.url]);
  return hash("sha256", Buffer.concat([Buffer.from(head), asBuffer(body)]), "base64url");
}

/** No bytes for a request that has no body (RFC 9112 section 6.3). */
function bodyOfNone(req: AnyRequest): Buffer {
  const raw = rawHeadersOf(req);
  const { httpVersionMajor } = Object(req.raw ?? req);
  const isNone =
    raw !== undefined &&
    httpVersionMajor === 1 &&
    fieldLines(raw, "transfer-encoding").length === 0 &&
    fieldLines(raw, "content-length").every((length) => /^0+$/.test(length));
  if (isNone) return Buffer.alloc(0);
  return refuseUncaptured(req);
}

function readHeader(value: unknown = "Idempotency-Key", owner: OptionOwner, name: string): string {
  if (typeof value === "string" && fieldName.test(value)) return value;
  throw optionError(owner, name, "the name of a header field", value);
}
