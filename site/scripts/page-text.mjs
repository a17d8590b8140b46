// What VitePress wants otherwise than the documents have it. What stands in a fence is shown as it is.

/** A page is an H1 and what belongs to it: the documents that have several get them as sections. */
export function forVitePress(text) {
  let titles = 0;
  return outsideFences(outsideFences(text, withFences), (piece) =>
    piece.replaceAll(/^# /gm, (mark) => (titles++ === 0 ? mark : "## ")),
  );
}

// Code that is marked by its indentation alone gets a frame that scrolls, and the keyboard can reach.
function withFences(text) {
  return text.replaceAll(/(?<=\n\n)((?: {4}[^\n]*\n)(?:(?: {4}[^\n]*)?\n)*)/g, (block) => {
    const lines = block
      .trimEnd()
      .split("\n")
      .map((line) => line.slice(4));
    return ["```text", ...lines, "```", "", ""].join("\n");
  });
}

function outsideFences(markdown, change) {
  const pieces = markdown.split(/(^ *```[\s\S]*?^ *```$)/m);
  return pieces.map((piece, index) => (index % 2 === 1 ? piece : change(piece))).join("");
}
