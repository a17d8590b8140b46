import type { TamperedPart } from "./tamper.ts";

/** The correct way to send an instruction, or one that a platform has to refuse. */
export type PayoutVariant =
  | "plain"
  | "tamper-body"
  | "tamper-digest"
  | "tamper-signature"
  | "tamper-path"
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
  readonly sends: string;
  /** Statuses of the last request; of `concurrent` those of each, of which one is a 2xx. */
  readonly expected: readonly string[];
}

export const payoutVariants: readonly PayoutVariantInfo[] = [
  { variant: "plain", sends: "one instruction, as it should be", expected: ["2xx"] },
  tampered("body", "the body is changed after signing"),
  tampered("digest", "body and Content-Digest are changed after signing, so that they match"),
  tampered("signature", "one bit of the signature is turned"),
  tampered("path", "the signature is made for another path"),
  { variant: "expired", flag: "expired", sends: "signed as of two minutes ago", expected: ["401"] },
  { variant: "future", flag: "future", sends: "signed as of two minutes ahead", expected: ["401"] },
  { variant: "replay", flag: "replay", sends: "the same signed request twice", expected: ["401"] },
  {
    variant: "duplicate",
    flag: "duplicate",
    sends: "the same instruction twice, signed anew with a fresh nonce",
    expected: ["409"],
  },
  {
    variant: "concurrent",
    flag: "concurrent",
    takesCount: true,
    sends: "the same instruction several times at once, each signed anew",
    expected: ["2xx", "409", "503"],
  },
];

function tampered(part: TamperedPart, sends: string): PayoutVariantInfo {
  return { variant: `tamper-${part}`, flag: "tamper", value: part, sends, expected: ["401"] };
}
