// JSON with its lines indented, for reading. Nothing here knows the document.

const tokens = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** JSON with each member in a line of its own; numbers and texts stay as they are written. Any other text is given back. */
export function indented(text) {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  let depth = 0;
  let before = "";
  const written = (token) => {
    const isEmpty = "{[".includes(before) && "}]".includes(token);
    if ("}]".includes(token)) depth -= 1;
    const isLine = /^[{[,]$/.test(before) || ("}]".includes(token) && before !== "");
    const start = isLine && !isEmpty ? `\n${"  ".repeat(depth)}` : before === ":" ? " " : "";
    if ("{[".includes(token)) depth += 1;
    before = token;
    return start + token;
  };
  return text.match(tokens).map(written).join("");
}
