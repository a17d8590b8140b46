import type {
  KeyValidity,
  PublicKeyInput,
  SignatureAlgorithm,
  SignatureProfile,
  VerificationKey,
  VerifyOptions,
} from "@countersign/http-message-signatures";

export interface VectorKey extends KeyValidity {
  readonly keyid: string;
  readonly algorithm: SignatureAlgorithm;
  readonly jwk: PublicKeyInput;
}

export interface VectorMessage {
  readonly method: string;
  readonly target: string;
  readonly status?: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly trailers?: readonly (readonly [name: string, value: string])[];
  readonly scheme?: "http" | "https";
  readonly authority?: string;
  /** In base64. */
  readonly body?: string;
}

/** As far as tests look into a vector; the README tells the rest. */
export interface Vector {
  readonly id: string;
  readonly shows: string;
  /** Unix seconds. */
  readonly time: number;
  readonly keys: readonly VectorKey[];
  readonly policies: readonly SignatureProfile[];
  readonly need?: "all" | "any";
  readonly message: VectorMessage;
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

/** Throws a TypeError for a key that is refused. */
export function importKey(key: VectorKey): VerificationKey;

export function readVectors(): ReadonlyMap<string, VectorFile>;

export function faultsOf(vector: Vector, engine: VerifyOptions["engine"]): readonly string[];
