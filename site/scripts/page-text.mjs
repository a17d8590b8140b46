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

const managers = {
  npm: [],
  pnpm: [
    [/npm init -y/g, "pnpm init"],
    [/npm install --save-dev/g, "pnpm add -D"],
    [/npm install (?=\S)/g, "pnpm add "],
    [/^npm (?=install$|test$|create )/gm, "pnpm "],
    // These give a program all that stands after its name.
    [/^(pnpm create .*) -- /gm, "$1 "],
  ],
  yarn: [
    [/npm init -y/g, "yarn init -y"],
    [/npm install --save-dev/g, "yarn add -D"],
    [/npm install (?=\S)/g, "yarn add "],
    [/^npm create (\S+)@latest/gm, "yarn create $1"],
    [/^(yarn create .*) -- /gm, "$1 "],
    [/^npm (?=install$|test$)/gm, "yarn "],
  ],
};

/** Commands that install get a tab for each package manager. */
export function withManagers(markdown) {
  return markdown.replaceAll(
    /^```sh\n((?:npm (?:init|install|create) )[\s\S]*?)^```$/gm,
    (_all, commands) => {
      const tabs = Object.entries(managers).map(([name, changes]) => {
        const text = changes.reduce((changed, [from, to]) => changed.replaceAll(from, to), commands);
        return `\`\`\`sh [${name}]\n${text}\`\`\``;
      });
      return `::: code-group\n\n${tabs.join("\n\n")}\n\n:::`;
    },
  );
}

const tabs = /^<!-- tabs -->\n\n([\s\S]*?)^<!-- end of tabs -->$/gm;
const filter = /^<!-- filter: (.*) -->\n\n/gm;

/** Sections between marks of tabs become tabs, each by its heading; a table after a mark gets a filter by the text and by columns. */
export function withParts(markdown) {
  return markdown
    .replaceAll(tabs, (_all, sections) => {
      const parts = sections.split(/^(?=## )/m).map((part) => `<div>\n\n${part.trim()}\n\n</div>`);
      return `<div class="page-tabs">\n${parts.join("\n")}\n</div>`;
    })
    .replaceAll(filter, (_all, columns) => {
      const choices = columns.split(", ").map((name) => {
        const title = name[0].toUpperCase() + name.slice(1);
        return `<label>${title} <select name="${name}"><option value="">all</option></select></label>`;
      });
      const text = `<label>Text <input type="search" name="text"></label>`;
      return `<form class="row-filter">${text}${choices.join("")}<output></output></form>\n\n`;
    });
}

/** For readers of markdown: sections and tables are theirs as they stand. */
export function withoutParts(markdown) {
  return markdown.replaceAll(/^<!-- (?:tabs|end of tabs|filter: .*) -->\n\n/gm, "");
}
