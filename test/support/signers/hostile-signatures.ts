import type { WireRequest } from "../servers/http-client.ts";
import { samplePath, sha256Field, withHeader, type SigningPlan } from "./independent-signer.ts";
import { strangerKey } from "./test-keys.ts";

/** What the caller does, the code in the log, the request. */
export type HostileRow = readonly [title: string, code: string, make: () => WireRequest];

const now = (): number => Math.floor(Date.now() / 1000);

/**
 * Requests to the sample path that no verifier may take, all of them a 401: of each refusal one, and what a server could change. Further
 * ones are in test/vectors. `sign` makes the genuine one that each differs from.
 */
export function hostileSignatures(sign: (plan?: SigningPlan) => WireRequest): readonly HostileRow[] {
  const digest = sha256Field(sign().body);
  const covered = [
    ['"@method"', "POST"],
    ['"@path"', samplePath],
    ['"content-type"', "application/json"],
    ['"content-digest"', digest],
  ] as const;

  const add = (...lines: string[]): WireRequest => {
    const signed = sign();
    return { ...signed, headers: [...signed.headers, ...lines] };
  };
  const edit = (name: string, change: (value: string) => string | undefined): WireRequest => {
    const signed = sign();
    return { ...signed, headers: withHeader(signed.headers, name, change) };
  };
  const signedAt = (path: string): WireRequest => sign({ path });
  const parameters = (values: Record<string, string | undefined>): WireRequest =>
    sign({ parameters: values });
  const covering = (...components: (readonly [string, string])[]): WireRequest =>
    sign({ covered: components });

  return [
    [
      "no signature at all",
      "signature-missing",
      () => ({ ...sign(), headers: ["Content-Type", "application/json"] }),
    ],
    [
      "Signature without Signature-Input",
      "signature-missing",
      () => edit("signature-input", () => undefined),
    ],
    [
      "a repeated label in two lines",
      "field-invalid",
      () => {
        const signed = sign();
        return { ...signed, headers: [...signed.headers, ...signed.headers.slice(4, 6)] };
      },
    ],
    [
      "two signatures that both fit",
      "signature-ambiguous",
      () => {
        const one = sign();
        const other = sign({ label: "sig2" });
        return { ...one, headers: [...one.headers, ...other.headers.slice(4)] };
      },
    ],
    [
      "a signature of 63 bytes",
      "signature-malformed",
      () => edit("signature", () => `sig1=:${Buffer.alloc(63, 1).toString("base64")}:`),
    ],
    ["a field over 4 KiB", "field-limit", () => parameters({ tag: `"${"x".repeat(4096)}"` })],
    ["a tag that is a token", "tag-invalid", () => parameters({ tag: "payout" })],
    ["a required component missing", "component-required", () => covering(...covered.slice(0, 3))],
    [
      "a required component with a parameter instead",
      "component-parameter-unsupported",
      () => covering(covered[0], covered[1], covered[2], ['"content-digest";req', digest]),
    ],
    ["no covered component", "components-empty", () => covering()],
    ["a component covered twice", "component-duplicate", () => covering(...covered, covered[0])],
    ["an unknown derived component", "component-unsupported", () => covering(...covered, ['"@x"', "1"])],
    [
      "an upper-case component",
      "component-name-invalid",
      () => covering(...covered, ['"Content-Type"', "application/json"]),
    ],
    [
      "a covered field that is absent",
      "covered-field-missing",
      () => covering(...covered, ['"x-absent"', ""]),
    ],
    ["Content-Type twice", "covered-field-repeated", () => add("Content-Type", "application/json")],
    ["a query that nothing signs", "query-not-covered", () => signedAt(`${samplePath}?to=other`)],
    ["an empty query that nothing signs", "query-not-covered", () => signedAt(`${samplePath}?`)],
    [
      "an absolute-form target",
      "target-invalid",
      () => ({ ...sign(), path: `http://127.0.0.1${samplePath}` }),
    ],
    ["a fragment in the target", "target-invalid", () => signedAt(`${samplePath}#a`)],
    ["another case of the path", "signature-mismatch", () => ({ ...sign(), path: samplePath.toUpperCase() })],
    ["a slash at the end of the path", "signature-mismatch", () => ({ ...sign(), path: `${samplePath}/` })],
    ["another method", "signature-mismatch", () => ({ ...sign(), method: "PUT" })],
    ["X-HTTP-Method-Override", "method-override", () => add("X-HTTP-Method-Override", "DELETE")],
    ["X-HTTP-Method", "method-override", () => add("X-HTTP-Method", "DELETE")],
    ["X-Method-Override", "method-override", () => add("X-Method-Override", "DELETE")],
    ["alg none", "alg-mismatch", () => parameters({ alg: '"none"' })],
    ["alg absent", "alg-invalid", () => parameters({ alg: undefined })],
    ["a signature of another key", "signature-mismatch", () => sign({ key: strangerKey })],
    [
      "a signature of small order",
      "signature-mismatch",
      () =>
        edit(
          "signature",
          () => `sig1=:${Buffer.concat([Buffer.from([1]), Buffer.alloc(63)]).toString("base64")}:`,
        ),
    ],
    ["an unknown keyid", "key-unknown", () => sign({ keyid: "other" })],
    ["the keyid __proto__", "key-unknown", () => sign({ keyid: "__proto__" })],
    ["a keyid of 257 characters", "keyid-invalid", () => sign({ keyid: "k".repeat(257) })],
    ["created absent", "created-invalid", () => parameters({ created: undefined })],
    ["expires equal to created", "expires-invalid", () => sign({ lifetime: 0 })],
    ["a window of 61 seconds", "window-too-long", () => sign({ lifetime: 61 })],
    ["created in the future", "created-in-future", () => sign({ created: now() + 40 })],
    ["an expired signature", "signature-expired", () => sign({ created: now() - 70 })],
    ["nonce absent", "nonce-invalid", () => parameters({ nonce: undefined })],
    ["a nonce outside ASCII", "field-invalid", () => parameters({ nonce: '"n\u00e9"' })],
    ["Content-Digest missing", "covered-field-missing", () => edit("content-digest", () => undefined)],
    ["a digest of another body", "content-digest-mismatch", () => ({ ...sign(), body: Buffer.from("{}") })],
    [
      "an unknown digest algorithm alone",
      "content-digest-unsupported",
      () => sign({ contentDigest: "md5=:AAAA:" }),
    ],
    [
      "a right and a wrong digest",
      "content-digest-mismatch",
      () => sign({ contentDigest: `${digest}, sha-512=:${Buffer.alloc(64).toString("base64")}:` }),
    ],
  ];
}
