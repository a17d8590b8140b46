// parseSignatureInput: what is accepted is a dictionary of inner lists, and one spelling of it gives the same again.
import { MessageSignatureError, parseSignatureInput } from "@countersign/http-message-signatures";
import { assertProperty, assertSame, attempt, words } from "../property.mjs";
import {
  isSignatureInput,
  listPieces,
  readPieces,
  serializeSignatureInput,
} from "../reference/structured-fields.mjs";

const usual =
  'sig1=("@method" "@authority" "@path" "content-digest");created=1700000000;expires=1700000300;keyid="key-1";alg="ed25519";nonce="n";tag="t"';
export const seeds = [
  usual,
  `${usual}, sig2=()`,
  'a=("x";sf "y";key="k";bs "z";tr;req);b;c=?0;d=-1.250;e=:AQI=:;f=t/o*k:en;g="\\"\\\\"',
  `a=(${'"x" '.repeat(16)})`,
  `a=()${";p".repeat(9)}`,
  `a=("${"x".repeat(4100)}")`,
];
export const maxLength = 4200;
export const dictionary = [
  ", ",
  "; ",
  "\t",
  "\x00",
  "\x7f",
  "\xe9",
  ...words`
    "@query-param" "@method" ;name= ;sf ;req ;created= ;alg= =?1 =?0 =:AA==: =:YQ==: () ("a") ; \\
    \" -0 -0.0 0.10 000000000000001 999999999999.999 sig1= b=() * @1 %"
  `,
];

export function run(input) {
  const text = input.toString("latin1");
  const { value: members, error } = attempt(() => parseSignatureInput(text));
  if (error !== undefined) {
    assertProperty(error instanceof MessageSignatureError, "a refusal is a MessageSignatureError", { error });
    return error.message;
  }
  assertProperty(text.length <= 4096, "a field of more than 4096 characters is refused");
  assertProperty(isSignatureInput(text), "what is accepted is in the grammar of RFC 9651");
  assertSame(listPieces(members), readPieces(text), "what is read is what the text says");
  const spelt = [...members].map(([label, parsed]) => `${label}=${serializeSignatureInput(parsed)}`);
  assertSame(parseSignatureInput(spelt.join(", ")), members, "the canonical spelling says the same");
  for (const again of spelt) assertRefused(`${text},${again}`, "a label that stands twice is refused");
  for (const { components, parameters } of members.values()) assertNoneTwice(components, parameters);
  return outcomeOf([...members.values()]);
}

function assertNoneTwice(components, parameters) {
  const list = serializeSignatureInput({ components, parameters });
  for (const name of parameters.keys())
    assertRefused(`a=${list};${name}`, "a parameter that stands twice is refused");
  for (const component of components) {
    const identifier = serializeSignatureInput({ components: [component], parameters: new Map() }).slice(
      1,
      -1,
    );
    for (const name of component.parameters.keys()) {
      assertRefused(`a=(${identifier};${name})`, "a parameter of a component that stands twice is refused");
    }
  }
}

function assertRefused(text, property) {
  const { error } = attempt(() => parseSignatureInput(text));
  assertProperty(error instanceof MessageSignatureError, property, { text });
}

function outcomeOf(inputs) {
  const identifiers = inputs.flatMap(({ components }) => components);
  const parameters = [...inputs, ...identifiers].flatMap((owner) => [...owner.parameters.values()]);
  const types = new Set(parameters.map(({ type }) => type));
  return `${inputs.length} ${Math.min(3, identifiers.length)} ${types.size}`;
}
