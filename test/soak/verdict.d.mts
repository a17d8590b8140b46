export interface SoakAnswer {
  readonly key: string;
  readonly nonce: string;
  readonly kind: "payout" | "duplicate" | "other amount" | "retry" | "replay";
  /** 0: none came. */
  readonly status: number;
  /** It said that the key is paid, and the key was not. */
  readonly unpaid: boolean;
  /** Of a replay: how the first request with these bytes was answered. */
  readonly firstStatus?: number | undefined;
}

export interface SoakEvidence {
  readonly keys: readonly string[];
  readonly paidKeys: readonly string[];
  readonly wedged: readonly string[];
  readonly answers: readonly SoakAnswer[];
  readonly passes: readonly string[];
}

export function judge(evidence: SoakEvidence): string[];
