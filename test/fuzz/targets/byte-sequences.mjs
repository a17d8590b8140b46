// parseByteSequenceDictionary: accepts exactly what a reading by splitting at commas and decoding bit by bit accepts.
import { MessageSignatureError } from "@countersign/http-message-signatures";
import { parseByteSequenceDictionary } from "@countersign/http-message-signatures/internal";
import { assertProperty, assertSame, attempt, words } from "../property.mjs";
import { decodeBase64 } from "../reference/base64.mjs";

export const seeds = [
  "sig1=:AQIDBA==:",
  "sha-256=:LCa0a2j/xo/5m0U8HTBBNBNCLXBkg7+g+YpeiGJm564=:, sha-512=:AAECAw==:",
  " a=:YQ==:\t,\t*b=:YWI=: ",
  "a=:YQ==:,b=:YQ==:,c=:YQ==:,d=:YQ==:",
  "a=:YQ==:,b=:YQ==:,c=:YQ==:,d=:YQ==:,e=:YQ==:",
  "a=:YQ==:;p",
  `a=:${"A".repeat(4092)}:`,
  ` a=:${"A".repeat(4092)}:`,
  `a=:${"A".repeat(4096)}:`,
];
export const maxLength = 4200;
export const dictionary = [
  ", ",
  "\t",
  " ",
  "\x80",
  ...words`
    =: :, ==: =:YQ==: =:YWI=: :: ;q=1 - _ a= *
  `,
];

const member = /^([a-z*][a-z0-9_\-.*]*)=:([^:]*):$/;

function readReference(text) {
  const members = new Map();
  const pieces = text.replace(/^ +/, "").split(",");
  if (text.length > 4096 || pieces.length > 4) return undefined;
  for (const [index, piece] of pieces.entries()) {
    const first = index === 0 ? piece : piece.replace(/^[ \t]+/, "");
    const [, key, base64] = member.exec(first.replace(/[ \t]+$/, "")) ?? [];
    const bytes = base64 === undefined ? undefined : decodeBase64(base64);
    if (bytes === undefined || bytes.length === 0 || members.has(key)) return undefined;
    members.set(key, bytes);
  }
  return members;
}

export function run(input) {
  const text = input.toString("latin1");
  const { value: members, error } = attempt(() => parseByteSequenceDictionary(text));
  const expected = readReference(text);
  if (error !== undefined) {
    assertProperty(error instanceof MessageSignatureError, "a refusal is a MessageSignatureError", { error });
    assertSame(undefined, expected, "what the reference accepts is accepted");
    return error.message;
  }
  assertSame(members, expected, "what is accepted is what the reference reads");
  return String(members.size);
}
