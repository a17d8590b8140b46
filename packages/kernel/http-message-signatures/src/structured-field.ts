import {
  FieldScanner,
  serializeBareItem,
  serializeParameters,
  type BareItem,
  type Parameters,
} from "./field-scanner.ts";
import { maxStructuredMembers } from "./limits.ts";
import { MessageSignatureError } from "./message-signature-error.ts";

/** A bare item with its parameters (RFC 8941 section 3.3). */
export interface Item {
  readonly item: BareItem;
  readonly parameters: Parameters;
}

/** RFC 8941 section 3.1.1. */
interface InnerList {
  readonly items: readonly Item[];
  readonly parameters: Parameters;
}

export type Member = Item | InnerList;

const isTrue: BareItem = { type: "boolean", value: true };

/** Reads an Item field (RFC 8941 section 4.2). Throws a MessageSignatureError (`field-invalid`, `field-limit`), as all of these do. */
export function parseItem(text: string, fieldName: string): Item {
  const scanner = new FieldScanner(text, fieldName, maxStructuredMembers);
  return scanner.readWhole(() => readItem(scanner));
}

/** Reads a List field; one without members is refused. */
export function parseList(text: string, fieldName: string): readonly Member[] {
  const scanner = new FieldScanner(text, fieldName, maxStructuredMembers);
  return scanner.readList(() => readMember(scanner));
}

/** Reads a Dictionary field; a repeated key and one without members are refused. */
export function parseDictionary(text: string, fieldName: string): ReadonlyMap<string, Member> {
  const scanner = new FieldScanner(text, fieldName, maxStructuredMembers);
  return scanner.readDictionary(
    () => readMember(scanner),
    () => ({ item: isTrue, parameters: scanner.readParameters() }),
  );
}

function readMember(scanner: FieldScanner): Member {
  if (!scanner.atInnerList()) return readItem(scanner);
  const items = scanner.readInnerList(maxStructuredMembers, () => readItem(scanner));
  return { items, parameters: scanner.readParameters() };
}

function readItem(scanner: FieldScanner): Item {
  return { item: scanner.readBareItem(), parameters: scanner.readParameters() };
}

/** RFC 8941 section 4.1.1. */
export function serializeList(members: readonly Member[]): string {
  return members.map(serializeMember).join(", ");
}

/** RFC 8941 section 4.1.2: a member that is true is its key alone, with its parameters. */
export function serializeDictionary(members: ReadonlyMap<string, Member>): string {
  const texts = [...members].map(([key, member]) => {
    const flag = "item" in member && member.item.type === "boolean" && member.item.value;
    return key + (flag ? serializeParameters(member.parameters) : `=${serializeMember(member)}`);
  });
  return texts.join(", ");
}

/** The value of a member (RFC 8941 sections 4.1.1.1 and 4.1.3). */
export function serializeMember(member: Member): string {
  const value =
    "item" in member
      ? serializeBareItem(member.item)
      : `(${member.items.map((item) => serializeMember(item)).join(" ")})`;
  return value + serializeParameters(member.parameters);
}

const keySyntax = /^[a-z*][a-z0-9_\-.*]*$/;
const tokenSyntax = /^[A-Za-z*][!#$%&'*+\-.^_`|~0-9A-Za-z:/]*$/;
const stringSyntax = /^[\x20-\x7e]*$/;
const decimalSyntax = /^-?(?:0|[1-9]\d{0,11})\.(?:0|\d{0,2}[1-9])$/;

/** Throws `field-invalid` for unserialisable parameters from code (RFC 8941 section 4.1): a line feed would end its line of a base. */
export function assertSerializable(parameters: Parameters): void {
  for (const [key, item] of parameters) {
    if (!keySyntax.test(key) || !hasSerialization(item)) {
      throw new MessageSignatureError("field-invalid", "a parameter has no serialisation");
    }
  }
}

function hasSerialization(item: BareItem): boolean {
  switch (item.type) {
    case "integer":
      return Number.isInteger(item.value) && Math.abs(item.value) <= 999_999_999_999_999;
    case "decimal":
      return decimalSyntax.test(item.text) && item.text !== "-0.0";
    case "string":
      return stringSyntax.test(item.value);
    case "token":
      return tokenSyntax.test(item.text);
    case "binary":
      return Buffer.from(item.base64, "base64").toString("base64") === item.base64;
    default:
      return typeof item.value === "boolean";
  }
}
