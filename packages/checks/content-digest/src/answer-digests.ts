import {
  fieldLines,
  option,
  readOptions,
  type HeaderLines,
  type OptionOwner,
  type OptionTable,
  type ReadOptions,
} from "@countersign/core/internal";
import { MessageSignatureError } from "@countersign/http-message-signatures";
import { parseDictionary } from "@countersign/http-message-signatures/internal";
import { computeDigest } from "./check.ts";
import { readAlgorithms, readList, type DigestAlgorithm } from "./options.ts";

type DigestField = "Content-Digest" | "Repr-Digest";

export interface AnswerDigestOptions {
  /** Fields of an answer. Default `["Content-Digest"]`. */
  readonly fields?: readonly DigestField[] | undefined;
  /** What Want-Content-Digest and Want-Repr-Digest may choose from; without them the first. Default both, sha-256 first. */
  readonly algorithms?: readonly DigestAlgorithm[] | undefined;
  /** Send a field only when the request asks for it. Default false. */
  readonly onlyWanted?: boolean | undefined;
}

export const answerTable = {
  fields: option.own(readFields, '["Content-Digest"]'),
  algorithms: option.own(readAlgorithms, "both"),
  onlyWanted: option.boolean(false),
} satisfies OptionTable<AnswerDigestOptions, unknown>;

/** An answer as sent, its content coding applied. */
interface AnswerToDigest {
  readonly status: number;
  /** Names and values alternate. */
  readonly rawHeaders: readonly string[];
  readonly body: Uint8Array;
}

interface AskingRequest extends HeaderLines {
  readonly method: string;
}

type Digests = Readonly<Partial<Record<DigestField, string>>>;

/**
 * Returns the digest fields (RFC 9530 sections 2 and 3) of an answer. The algorithm is the one that Want-Content-Digest or Want-Repr-Digest prefers
 * (section 4), else by the first. Leaves out fields that are unwanted or there already, all of an answer without content (HEAD, 204, 205,
 * 304), and Repr-Digest of a part (206). Throws a TypeError on a bad option.
 */
export function answerDigests(
  request: AskingRequest,
  answer: AnswerToDigest,
  options: AnswerDigestOptions = {},
): Digests {
  return digestsOf(request, answer, readOptions("answerDigests", answerTable, options));
}

const withoutContent: ReadonlySet<number> = new Set([204, 205, 304]);

export function digestsOf(
  request: AskingRequest,
  { status, rawHeaders, body }: AnswerToDigest,
  { fields, algorithms, onlyWanted }: ReadOptions<typeof answerTable>,
): Digests {
  if (request.method === "HEAD" || withoutContent.has(status)) return {};
  const digests: Partial<Record<DigestField, string>> = {};
  for (const field of fields) {
    const isThere = fieldLines({ rawHeaders }, field.toLowerCase()).length > 0;
    if (isThere || (field === "Repr-Digest" && status === 206)) continue;
    const wants = fieldLines(request, `want-${field.toLowerCase()}`);
    const isAsked = wants.length > 0;
    const algorithm = isAsked ? preferredAlgorithm(wants, algorithms) : algorithms[0];
    if (algorithm === undefined || (onlyWanted && !isAsked)) continue;
    digests[field] = `${algorithm}=:${computeDigest(body, algorithm)}:`;
  }
  return digests;
}

/** The first of `offered` with the highest weight in a Want- field (RFC 9530 section 4); undefined if none is wanted or it is malformed. */
function preferredAlgorithm(
  lines: readonly string[],
  offered: readonly DigestAlgorithm[],
): DigestAlgorithm | undefined {
  const wanted = parseWanted(lines);
  let preferred: DigestAlgorithm | undefined;
  let most = 0;
  for (const algorithm of offered) {
    const weight = wanted.get(algorithm) ?? 0;
    if (weight <= most) continue;
    preferred = algorithm;
    most = weight;
  }
  return preferred;
}

/** Weights from 0, not acceptable, to 10, most preferred; empty for a malformed field. */
function parseWanted(lines: readonly string[]): ReadonlyMap<string, number> {
  const wanted = new Map<string, number>();
  try {
    for (const [algorithm, member] of parseDictionary(lines.join(", "), "Want-Content-Digest")) {
      if (!("item" in member) || member.item.type !== "integer") return new Map();
      const { value } = member.item;
      if (value < 0 || value > 10) return new Map();
      wanted.set(algorithm, value);
    }
  } catch (error) {
    if (!(error instanceof MessageSignatureError)) throw error;
    return new Map();
  }
  return wanted;
}

function readFields(
  fields: unknown = ["Content-Digest"],
  owner: OptionOwner,
  name: string,
): readonly DigestField[] {
  return readList(fields, isDigestField, { owner, name, known: '"Content-Digest" and "Repr-Digest"' });
}

function isDigestField(field: unknown): field is DigestField {
  return field === "Content-Digest" || field === "Repr-Digest";
}
