import type { TamperedPart } from "./tamper.ts";

/** The correct way to send an instruction, or one that a platform has to refuse. */
export type PayoutVariant =
  | "plain"
  | "tamper-body"
  | "tamper-digest"
  | "tamper-signature"
  | "tamper-path"
  | "tamper-prefix-removed"
  | "tamper-prefix-added"
  | "tamper-charset-added"
  | "tamper-body-re-serialised"
  | "tamper-created-milliseconds"
  | "expired"
  | "future"
  | "replay"
  | "duplicate"
  | "concurrent";

/** Name, effect and expected status of a variant, offered by the command line and the page in this order. */
export interface PayoutVariantInfo {
  readonly variant: PayoutVariant;
  /** The flag of `countersign payout`, without its dashes; undefined for the instruction as it should be. */
  readonly flag?: string | undefined;
  /** The flag's value; with `takesCount` the flag has the number of requests. */
  readonly value?: TamperedPart | undefined;
  readonly takesCount?: true | undefined;
  /** In plain words. */
  readonly sends: string;
  /** Statuses of the last request; of `concurrent` those of each, of which one is a 2xx. */
  readonly expected: readonly string[];
}

export const payoutVariants: readonly PayoutVariantInfo[] = [
  { variant: "plain", sends: "As it should be", expected: ["2xx"] },
  tampered("body", "Body changed after signing"),
  tampered("digest", "Body and its digest changed after signing"),
  tampered("signature", "One bit of the signature turned"),
  tampered("path", "Signature made for another path"),
  tampered("prefix-removed", "Path without a prefix that was signed, as a proxy removes it"),
  tampered("prefix-added", "Path with a prefix that was not signed, as a proxy adds it"),
  tampered("charset-added", "Charset added to Content-Type after signing"),
  tampered("body-re-serialised", "Body parsed and serialised again after signing"),
  tampered("created-milliseconds", "Times of the signature in milliseconds"),
  { variant: "expired", flag: "expired", sends: "Signature that ran out a minute ago", expected: ["401"] },
  { variant: "future", flag: "future", sends: "Signature dated two minutes ahead", expected: ["401"] },
  { variant: "replay", flag: "replay", sends: "The same signed request twice", expected: ["401"] },
  {
    variant: "duplicate",
    flag: "duplicate",
    sends: "The same payout twice, signed anew",
    expected: ["409"],
  },
  {
    variant: "concurrent",
    flag: "concurrent",
    takesCount: true,
    sends: "The same payout n times at once",
    expected: ["2xx", "409", "503"],
  },
];

function tampered(part: TamperedPart, sends: string): PayoutVariantInfo {
  return { variant: `tamper-${part}`, flag: "tamper", value: part, sends, expected: ["401"] };
}
