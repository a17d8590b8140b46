import type { VerificationEngine } from "@countersign/http-message-signatures";

/** As far as tests look into a vector; the README tells the rest. */
export interface Vector {
  readonly id: string;
  readonly shows: string;
  readonly policies: readonly { readonly algorithms: readonly string[] }[];
  readonly expected: {
    readonly verdict: "valid" | "refused";
    readonly code?: string;
    readonly bases?: Readonly<Record<string, string>>;
  };
}

export interface VectorFile {
  readonly theme: string;
  readonly count: number;
  readonly vectors: readonly Vector[];
}

export function readVectors(): ReadonlyMap<string, VectorFile>;

export function faultsOf(vector: Vector, engine: VerificationEngine): readonly string[];
