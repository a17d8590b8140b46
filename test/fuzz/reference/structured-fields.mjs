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
