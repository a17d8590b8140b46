const token = /[\x20\t\n\r]+|"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[[\]{}:,]/gy;

/**
 * What is wrong with the bytes of a JSON text, by `JSON.parse`, `TextDecoder` and a walk over its tokens.
 * @param {Buffer} bytes @param {number} maxDepth
 * @returns {{ value?: unknown, faults: ReadonlySet<string>, leastValues: number }}
 */
export function judgeJson(bytes, maxDepth) {
  const faults = new Set();
  if (bytes.length === 0) return { faults: faults.add("json-empty"), leastValues: 0 };
  let text;
  let value;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    value = JSON.parse(text);
  } catch {
    return { faults: faults.add("json-invalid"), leastValues: 0 };
  }
  const walk = walkTokens(text);
  if (walk.depth > maxDepth) faults.add("json-too-deep");
  if (walk.repeats) faults.add("json-duplicate-key");
  if (walk.reachesPrototype || hasConstructorPrototype(value)) faults.add("json-forbidden-key");
  if (walk.strings.some((string) => !string.isWellFormed())) faults.add("json-lone-surrogate");
  if (walk.numbers.some((digits) => !Number.isFinite(Number(digits)))) faults.add("json-number-range");
  return { value, faults, leastValues: walk.values };
}

/** @param {string} text That JSON.parse has accepted. */
function walkTokens(text) {
  const strings = [];
  const numbers = [];
  const open = [];
  let [depth, values, repeats, reachesPrototype] = [0, 0, false, false];
  for (const [found] of text.matchAll(token)) {
    if (/^[\x20\t\n\r]/.test(found)) continue;
    if (found === ":") {
      const name = strings.at(-1);
      values -= 1;
      reachesPrototype ||= name === "__proto__";
      repeats ||= open.at(-1).has(name);
      open.at(-1).add(name);
    } else if (found === "{" || found === "[") {
      open.push(new Set());
      values += 1;
      depth = Math.max(depth, open.length);
    } else if (found === "}" || found === "]") open.pop();
    else if (found !== ",") {
      values += 1;
      if (found.startsWith('"')) strings.push(JSON.parse(found));
      else if (/^[-\d]/.test(found)) numbers.push(found);
    }
  }
  return { strings, numbers, depth, values, repeats, reachesPrototype };
}

// What `Object.assign` and the like would take for the prototype of a class.
function hasConstructorPrototype(value) {
  if (typeof value !== "object" || value === null) return false;
  const { constructor: member } = Object.getOwnPropertyDescriptors(value);
  const inner = member?.value;
  if (typeof inner === "object" && inner !== null && Object.hasOwn(inner, "prototype")) return true;
  return Object.values(value).some(hasConstructorPrototype);
}

/**
 * By JSON pointer (RFC 6901), each value of a text that JSON.parse has accepted: the digits of a number, undefined for another value.
 * @param {string} text
 * @returns {ReadonlyMap<string, string | undefined>}
 */
export function numberTexts(text) {
  const tokens = [...text.matchAll(token)]
    .map(([found]) => found)
    .filter((found) => /^[^\x20\t\n\r]/.test(found));
  const found = new Map();
  let next = 0;
  readValue("");
  return found;

  function readValue(pointer) {
    const first = tokens[next++];
    found.set(pointer, /^[-\d]/.test(first) ? first : undefined);
    if (first === "[") readMembers("]", (index) => readValue(`${pointer}/${index}`));
    if (first === "{") {
      readMembers("}", () => {
        const name = JSON.parse(tokens[next]).replaceAll("~", "~0").replaceAll("/", "~1");
        // The name and its colon.
        next += 2;
        readValue(`${pointer}/${name}`);
      });
    }
  }

  function readMembers(end, readMember) {
    for (let index = 0; tokens[next] !== end; index += 1) {
      readMember(index);
      if (tokens[next] === ",") next += 1;
    }
    next += 1;
  }
}
