// RFC 9651 section 3 as one regular expression for what Signature-Input may hold, and its serialisation (section 4.1).
const key = String.raw`[a-z*][a-z0-9_\-.*]*`;
const string = String.raw`"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"`;
const number = String.raw`-?(?:\d{1,12}\.\d{1,3}|\d{1,15})`;
const bareItem = [
  string,
  number,
  String.raw`[A-Za-z*][!#$%&'*+\-.^_\x60|~0-9A-Za-z:/]*`,
  ":[A-Za-z0-9+/]*={0,2}:",
  String.raw`\?[01]`,
].join("|");
const parameters = `(?:; *${key}(?:=(?:${bareItem}))?)*`;
const component = `${string}${parameters}`;
const innerList = String.raw`\( *(?:${component}(?: +${component})*)? *\)${parameters}`;
const member = `${key}=${innerList}`;
const grammar = new RegExp(String.raw`^ *${member}(?:[ \t]*,[ \t]*${member})*[ \t]*$`);

/** Whether `text` is a dictionary of inner lists of strings. @param {string} text */
export function isSignatureInput(text) {
  return grammar.test(text);
}

const piece = new RegExp(`(${key})=[(]|(${string})|; *(${key})(?:=(${bareItem}))?`, "g");

/**
 * What a text of the grammar says, in its order: labels, names of components, parameters with their values.
 * @param {string} text
 */
export function readPieces(text) {
  return [...text.matchAll(piece)].map(([, label, name, parameter, value]) => {
    if (label !== undefined) return `label ${label}`;
    return name === undefined ? `;${parameter} ${readValue(value)}` : `name ${unquote(name)}`;
  });
}

/** The same of members that were parsed. @param {ReadonlyMap<string, import("@countersign/http-message-signatures").SignatureInput>} members */
export function listPieces(members) {
  return [...members].flatMap(([label, { components, parameters: ofSignature }]) => [
    `label ${label}`,
    ...components.flatMap(({ name, parameters: own }) => [`name ${name}`, ...listParameters(own)]),
    ...listParameters(ofSignature),
  ]);
}

function listParameters(map) {
  return [...map].map(([name, item]) => {
    const value = item.type === "binary" ? item.base64 : (item.value ?? item.text);
    return `;${name} ${item.type} ${item.type === "decimal" ? Number(value) : value}`;
  });
}

function readValue(text) {
  if (text === undefined || text === "?1") return "boolean true";
  if (text === "?0") return "boolean false";
  if (text.startsWith('"')) return `string ${unquote(text)}`;
  if (text.startsWith(":")) return `binary ${text.slice(1, -1)}`;
  if (/^[-\d]/.test(text)) return `${text.includes(".") ? "decimal" : "integer"} ${Number(text)}`;
  return `token ${text}`;
}

function unquote(text) {
  return text.slice(1, -1).replaceAll(/\\(.)/g, "$1");
}

/** @param {import("@countersign/http-message-signatures").SignatureInput} input */
export function serializeSignatureInput({ components, parameters: ofSignature }) {
  const list = components.map(({ name, parameters: own }) => quote(name) + serializeParameters(own));
  return `(${list.join(" ")})${serializeParameters(ofSignature)}`;
}

function serializeParameters(map) {
  return [...map].map(([name, item]) => `;${name}${serializeValue(item)}`).join("");
}

function serializeValue(item) {
  if (item.type === "boolean") return item.value ? "" : "=?0";
  if (item.type === "string") return `=${quote(item.value)}`;
  if (item.type === "binary") return `=:${item.base64}:`;
  return `=${item.type === "integer" ? item.value.toString() : item.text}`;
}

function quote(text) {
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
