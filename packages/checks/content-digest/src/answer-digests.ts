import {
  fieldLines,
  option,
  optionError,
  readOptions,
  type HeaderLines,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/door";
import { computeDigest, preferredDigestAlgorithm, type DigestAlgorithm } from "./digest-fields.ts";
import { readAlgorithms } from "./options.ts";

/** The fields of an answer that have digests. */
export type DigestField = "Content-Digest" | "Repr-Digest";

/** Options of {@link digestResponse}, and of {@link answerDigests}. */
export interface AnswerDigestOptions {
  /** Which fields an answer gets. Default `["Content-Digest"]`. */
  readonly fields?: readonly DigestField[] | undefined;
  /** What can be asked for, by Want-Content-Digest and Want-Repr-Digest; the first is for those who ask for nothing. Default both, sha-256 first. */
  readonly algorithms?: readonly DigestAlgorithm[] | undefined;
  /** Give a field only to who asks for it. Default false. */
  readonly onlyWanted?: boolean | undefined;
}

export const answerTable = {
  fields: option.own(readFields, '["Content-Digest"]'),
  algorithms: option.own(readAlgorithms, "both"),
  onlyWanted: option.boolean(false),
} satisfies OptionTable<AnswerDigestOptions, unknown>;

/** The options, checked. */
export type ResolvedAnswerDigests = ReadOptions<typeof answerTable>;

/** An answer as it leaves, its content coding applied. */
export interface AnswerToDigest {
  readonly status: number;
  /** Names and values by turns. */
  readonly rawHeaders: readonly string[];
  readonly body: Uint8Array;
}

/** The request that is answered. */
export interface AskingRequest extends HeaderLines {
  readonly method: string;
}

/**
 * The digest fields (RFC 9530 sections 2 and 3) of an answer: of the algorithm that the request prefers by Want-Content-Digest or
 * Want-Repr-Digest (section 4), else of the first. None where the request wants none of them, or the answer has no content (HEAD,
 * 204, 205, 304), and none that it has already; no Repr-Digest of a part (206). Throws a TypeError on a bad option.
 */
export function answerDigests(
  request: AskingRequest,
  answer: AnswerToDigest,
  options: AnswerDigestOptions = {},
): Readonly<Partial<Record<DigestField, string>>> {
  return digestsOf(request, answer, readOptions("answerDigests", answerTable, options));
}

const withoutContent: ReadonlySet<number> = new Set([204, 205, 304]);

/** {@link answerDigests} of options that were read. */
export function digestsOf(
  request: AskingRequest,
  { status, rawHeaders, body }: AnswerToDigest,
  { fields, algorithms, onlyWanted }: ResolvedAnswerDigests,
): Readonly<Partial<Record<DigestField, string>>> {
  if (request.method === "HEAD" || withoutContent.has(status)) return {};
  const digests: Partial<Record<DigestField, string>> = {};
  for (const field of fields) {
    const isThere = fieldLines({ rawHeaders }, field.toLowerCase()).length > 0;
    if (isThere || (field === "Repr-Digest" && status === 206)) continue;
    const wants = fieldLines(request, `want-${field.toLowerCase()}`);
    const isAsked = wants.length > 0;
    const algorithm = isAsked ? preferredDigestAlgorithm(wants, algorithms) : algorithms[0];
    if (algorithm === undefined || (onlyWanted && !isAsked)) continue;
    digests[field] = `${algorithm}=:${computeDigest(body, algorithm)}:`;
  }
  return digests;
}

function readFields(
  fields: unknown = ["Content-Digest"],
  owner: OptionOwner,
  name: string,
): readonly DigestField[] {
  if (
    Array.isArray(fields) &&
    fields.length > 0 &&
    fields.every(isDigestField) &&
    new Set(fields).size === fields.length
  ) {
    return [...fields];
  }
  throw optionError(
    owner,
    name,
    'a non-empty array of "Content-Digest" and "Repr-Digest", each once',
    fields,
  );
}

function isDigestField(field: unknown): field is DigestField {
  return field === "Content-Digest" || field === "Repr-Digest";
}
