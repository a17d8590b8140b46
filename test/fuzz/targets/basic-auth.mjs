// verifyBasicAuth and basicAuthVerifier on one Authorization line: accepted only as the scheme Basic with the one base64 text of
// a user-id and a password.
import { isGuardError } from "@countersign/core";
import { basicAuthVerifier, verifyBasicAuth } from "@countersign/webhook-basic-auth";
import { assertProperty, assertSame, attempt, words } from "../property.mjs";
import { decodeBase64 } from "../reference/base64.mjs";

const credentials = [
  { username: "receiver", password: "a:long password" },
  { username: "r\u00e9", password: "p\u00e4ss\u20ac" },
];
const tokenOf = (username, password) => Buffer.from(`${username}:${password}`).toString("base64");
const tokens = credentials.map(({ username, password }) => tokenOf(username, password));

export const seeds = [
  ...tokens.map((token) => `Basic ${token}`),
  `bAsIc   ${tokens[0]} `,
  `Basic ${tokenOf("someone", "else")}`,
  `Basic ${tokenOf("", "p")}`,
  `Basic ${tokenOf("u", "")}`,
  `Basic ${tokenOf("u", "\u0000")}`,
  `Basic ${Buffer.from("u:\xff", "latin1").toString("base64")}`,
  "Basic YTpi",
  `Bearer ${tokens[0]}`,
  "",
];
export const maxLength = 256;
export const scripts = /\/packages\/[^/]+\/[^/]+\/dist\/|\/node_modules\/basic-auth\//;
export const dictionary = [
  ...tokens,
  "Basic ",
  "basic ",
  " ",
  "\t",
  "\x00",
  "\xa0",
  ...words`
    YTpi OmI= YTo= YTph4oCo YTrDqQ== YTrtoIA= YTr/ YTrvu78= 77u/YTpi = == - _ , YTp/ YTqFYg==
    YQpiOmM=
  `,
];

// RFC 7617 section 2, and no character that a user-id or password here may not have.
function readReference(line) {
  const [, token] = /^ *basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(line) ?? [];
  const bytes = token === undefined ? undefined : decodeBase64(token);
  if (bytes === undefined) return undefined;
  const text = bytes.toString("utf8");
  const colon = text.indexOf(":");
  const isText = Buffer.from(text).equals(bytes) && !/[\p{Cc}\u2028\u2029]/u.test(text);
  return isText && colon > 0 && colon < text.length - 1 ? { bytes, text, colon } : undefined;
}

let asked;
const askingVerifier = basicAuthVerifier({
  verify(username, password) {
    asked = { username, password };
    return true;
  },
});

export async function run(input) {
  const line = input.toString("latin1");
  const expected = readReference(line);
  const { value: credential, error } = attempt(() => verifyBasicAuth(line, credentials));
  const index = credentials.findIndex(
    ({ username, password }) => expected?.bytes.equals(Buffer.from(`${username}:${password}`)) ?? false,
  );
  if (error === undefined) {
    assertSame(
      { ...credential },
      { username: credentials[index]?.username, index },
      "only a credential's bytes are accepted",
    );
  } else {
    assertProperty(isGuardError(error) && error.status === 401, "a refusal is a GuardError with 401", {
      error,
    });
    assertSame(index, -1, "a credential is accepted");
    const code = expected === undefined ? "credentials-malformed" : "credentials-wrong";
    assertSame(error.code, code, "the code says whether there was a user-id and password");
  }
  await assertAsked(line, expected);
  return error?.code ?? `credential ${index}`;
}

async function assertAsked(line, expected) {
  asked = undefined;
  const refusal = await askingVerifier({ rawHeaders: ["Authorization", line] }).then(
    () => undefined,
    (error) => error,
  );
  if (expected === undefined) {
    assertSame(refusal?.code, "credentials-malformed", "what is no user-id and password is refused");
    assertSame(asked, undefined, "the app is asked about nothing else");
  } else {
    const { text, colon } = expected;
    assertSame(
      asked,
      { username: text.slice(0, colon), password: text.slice(colon + 1) },
      "the app is asked about the decoded text",
    );
    assertSame(refusal, undefined, "what the app accepts is accepted");
  }
}
