// Accept-Signature is what a stranger asks for: any text is read, answered or refused by a code, and what is written is read back.
import { describe, expect, test } from "@jest/globals";
import {
  answerAcceptSignature,
  createAcceptSignature,
  createSigner,
  parseAcceptSignature,
  parseSignatureInput,
  type RequestMessage,
  type ResponseMessage,
} from "@countersign/http-message-signatures";
import * as fc from "fast-check";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";
import { now, privateKey, profile } from "./hand-signer.ts";

const signer = createSigner(privateKey, "test-key");
const request: RequestMessage = {
  method: "GET",
  target: "/a?id=7",
  rawHeaders: ["Host", "a.example", "X", "1"],
};
const response: ResponseMessage = { status: 200, rawHeaders: ["Priority", "u=1", "X", "2"], request };

const identifiers = [
  '"@status"',
  '"x"',
  '"x";bs',
  '"x";req',
  '"x";tr',
  '"priority";sf',
  '"priority";key="u"',
];
const derived = [
  '"@path";req',
  '"@query-param";name="id";req',
  '"@method"',
  '"@x"',
  '"X"',
  '"x";sf',
  '"absent"',
];
const component = fc.constantFrom(...identifiers, ...derived);
const value = fc.oneof(
  fc.constantFrom(
    '""',
    '"n"',
    '"test-key"',
    '"other"',
    '"ed25519"',
    '"hmac-sha256"',
    '"app"',
    "n",
    "1",
    "?0",
    ":AA==:",
  ),
  fc.integer({ min: 1, max: 600 }).map((length) => `"${"n".repeat(length)}"`),
);
const parameter = fc.oneof(
  fc.constantFrom(";created", ";expires", ";keyid", ";x"),
  fc
    .tuple(fc.constantFrom("nonce", "keyid", "alg", "tag", "created"), value)
    .map(([name, text]) => `;${name}=${text}`),
);
const asked = fc
  .tuple(
    fc.constantFrom("sig1", "a", "*"),
    fc.array(component, { maxLength: 4 }),
    fc.array(parameter, { maxLength: 4 }),
  )
  .map(([label, components, parameters]) => `${label}=(${components.join(" ")})${parameters.join("")}`);
// What request and response can both answer: of the others few can be.
const answerable = fc
  .subarray([";created", ';keyid="test-key"', ';alg="ed25519"', ';tag="app"'])
  .map((parameters) => `sig1=("x" "x";bs)${parameters.join("")}`);
const field = fc.oneof(
  answerable,
  { weight: 4, arbitrary: fc.array(asked, { minLength: 1, maxLength: 3 }).map((all) => all.join(", ")) },
  fc.string({
    unit: fc.constantFrom("a", "=", "(", ")", '"', ";", ",", " ", "?", ":", "\u00e9"),
    maxLength: 30,
  }),
);

const codeOf = (error: unknown): unknown =>
  error instanceof Error && error.name === "MessageSignatureError" ? Object(error).code : error;

describe("any Accept-Signature", () => {
  test("is answered as it asks, or refused by a code", async () => {
    let answered = 0;
    await fc.assert(
      fc.asyncProperty(field, fc.boolean(), async (text, isOfRequest) => {
        const message = isOfRequest ? request : response;
        let members: ReturnType<typeof parseAcceptSignature>;
        try {
          members = parseAcceptSignature(text);
        } catch (error) {
          expect(codeOf(error)).toMatch(/^field-/);
          return;
        }
        for (const [label, member] of members) {
          try {
            const fields = await answerAcceptSignature(message, [label, member], {
              signer,
              tags: ["app"],
              created: now,
            });
            const given = parseSignatureInput(fields.signatureInput).get(label);
            expect(given?.components).toEqual(member.components);
            expect([...(given?.parameters.keys() ?? [])]).toEqual([...member.parameters.keys()]);
            answered++;
          } catch (error) {
            expect(codeOf(error)).toMatch(/^[a-z-]+$/);
          }
        }
      }),
      fuzzRuns(2000),
    );
    expect(answered).toBeGreaterThan(10);
  });

  test("that a policy makes is read back as it was meant", () => {
    const computable = fc.uniqueArray(
      fc.constantFrom("@status", "x", '"x";bs', '"x";req', '"priority";key="u"'),
      { minLength: 1 },
    );
    const nonce = fc.string({ unit: fc.constantFrom("a", '"', "\\", " ", ";"), minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(computable, nonce, (requiredComponents, wanted) => {
        const text = createAcceptSignature(
          { ...profile, requiredComponents },
          { of: "response", nonce: wanted },
        );
        const read = parseAcceptSignature(text).get("sig1");
        expect(read?.components).toHaveLength(requiredComponents.length);
        expect(read?.parameters.get("nonce")).toEqual({ type: "string", value: wanted });
      }),
      fuzzRuns(500),
    );
  });
});
