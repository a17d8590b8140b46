// readSignature and createSignatureBase on a whole request: the first line of the input is method and target, the others are
// header lines. The base is read again, line by line, and each value compared with one computed here: then no two messages of which
// a covered part differs have one base.
import {
  createSignatureBase,
  MessageSignatureError,
  readSignature,
} from "@countersign/http-message-signatures";
import { assertProperty, assertSame, attempt, words } from "../property.mjs";
import { serializeSignatureInput } from "../reference/structured-fields.mjs";

const profile = {
  requiredComponents: ["@method"],
  algorithms: ["ed25519"],
  windowSeconds: 300,
  clockSkewSeconds: 30,
  tag: { exclude: ["not-this"] },
};
const signature = `Signature: a=:${Buffer.alloc(64, 1).toString("base64")}:`;
const parameters = ';created=1700000000;expires=1700000300;keyid="k";alg="ed25519";nonce="n"';

function request(components, ...lines) {
  return ["POST /payout?a=b", ...lines, `Signature-Input: a=(${components})${parameters}`, signature].join(
    "\n",
  );
}

export const seeds = [
  request('"@method" "@path" "@query" "@request-target"'),
  request('"@method" "@authority" "@scheme" "@target-uri"', "Host: Example.com:443"),
  request('"@method" "@authority"', ":authority: example.com", "host: example.com"),
  request(
    '"@method" "content-digest" "x-a" "content-type"',
    "Content-Digest: d",
    "X-A: 1 ",
    "x-a:  2",
    "Content-Type: t",
  ),
  `${request('"@method"')}\nSignature-Input: b=("@method")${parameters};tag="t"\nSignature: b=:AAAA:`,
  request('"@method" "x-a"', "X-A: , \\ ,").replace('nonce="n"', String.raw`nonce="\\"`),
  `GET /\n${signature}`,
];
export const maxLength = 900;
export const dictionary = [
  '"@method" ',
  '"@path" ',
  '"@query" ',
  '"@authority" ',
  '"@scheme" ',
  '"@target-uri" ',
  '"@request-target" ',
  '"x-a" ',
  '"host" ',
  '"content-type" ',
  '"@status" ',
  '"x-a";sf ',
  '"x-a";bs ',
  '"x-a";key="a" ',
  '"@path";req ',
  "\nX-A: ",
  "\nx-a: ",
  "\nHost: ",
  "\n:authority: ",
  "\nContent-Type: ",
  "\nSignature: ",
  "\nSignature-Input: ",
  parameters,
  "\xe9",
  "\t",
  " ",
  ...words`
    ;nonce= ;created= ;expires= ;alg="ed25519" ;tag="t" ;tag="not-this" created=1700000000; a=: b=:
    :443 :80 %2e // /../ \ # ? [::1] \\ \" ,
  `,
];

function readMessage(text) {
  const [first, ...lines] = text.split("\n");
  const at = first.indexOf(" ");
  return {
    method: at === -1 ? first : first.slice(0, at),
    target: at === -1 ? "/" : first.slice(at + 1),
    scheme: "https",
    rawHeaders: lines.flatMap((line) => {
      // Behind the first character, where a pseudo-header field has its colon.
      const colon = line.indexOf(":", 1);
      return colon === -1 ? [line, ""] : [line.slice(0, colon), line.slice(colon + 1)];
    }),
  };
}

function linesOf({ rawHeaders }, name) {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1].toLowerCase() === name);
}

function authorityOf(message) {
  const [authority = ""] = [...linesOf(message, ":authority"), ...linesOf(message, "host")];
  return authority
    .replace(/^[ \t]+/, "")
    .replace(/[ \t]+$/, "")
    .toLowerCase()
    .replace(/:(?:0*443)?$/, "");
}

const computed = {
  "@method": ({ method }) => method,
  "@path": ({ target }) => /^[^?]*/.exec(target)[0],
  "@query": ({ target }) => /\?.*$/.exec(target)?.[0] ?? "?",
  "@request-target": ({ target }) => target,
  "@scheme": () => "https",
  "@authority": authorityOf,
  "@target-uri": (message) => `https://${authorityOf(message)}${message.target}`,
};

/** RFC 9421 sections 2.1 and 2.2; undefined for what is not computed here. */
function valueOf(message, { name, parameters: own }) {
  if (own.size > 0) return undefined;
  if (name.startsWith("@")) return computed[name]?.(message);
  const values = linesOf(message, name).map((line) => line.replace(/^[ \t]+/, "").replace(/[ \t]+$/, ""));
  return values.join(", ");
}

export function run(input) {
  const message = readMessage(input.toString("latin1"));
  const { value: received, error } = attempt(() => readSignature(message, profile));
  if (error !== undefined) return refused(error);
  const { value: base, error: fault } = attempt(() => createSignatureBase(message, received.input));
  if (fault !== undefined) return refused(fault);

  const lines = base.split("\n");
  const { components } = received.input;
  assertSame(
    lines.length,
    components.length + 1,
    "the base has a line for each component and one for the parameters",
  );
  for (const [index, component] of components.entries()) {
    const identifier = serializeSignatureInput({ components: [component], parameters: new Map() }).slice(
      1,
      -1,
    );
    const value = valueOf(message, component);
    assertProperty(
      lines[index].startsWith(`${identifier}: `),
      "each line of the base has its component's name",
    );
    if (value !== undefined) {
      assertSame(lines[index], `${identifier}: ${value}`, "each line of the base has its component's value");
    }
  }
  assertSame(
    lines.at(-1),
    `"@signature-params": ${serializeSignatureInput(received.input)}`,
    "the parameters are signed",
  );
  assertProperty(/^[\n\x20-\x7e]*$/.test(base), "the base is printable ASCII");
  assertProperty(
    components.some(({ name }) => name === "@method"),
    "what is required is covered",
  );
  assertProperty(received.tag !== "not-this", "a tag that is excluded is refused");
  assertProperty(
    received.signature.length === 64 && received.expires > received.created,
    "the signature is sound",
  );
  return `accepted ${Math.min(5, components.length)} ${received.tag === undefined}`;
}

function refused(error) {
  assertProperty(error instanceof MessageSignatureError, "a refusal is a MessageSignatureError", { error });
  return error.code;
}
