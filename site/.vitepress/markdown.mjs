// How markdown becomes HTML, on pages and in the code beside the title of the home page.
export const markdown = {
  theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
  config: (renderer) => renderer.core.ruler.push("cell-labels", labelCells),
};

/** Each cell knows the head of its column: on a telephone, a row is a card, and shows it. */
function labelCells({ tokens }) {
  let heads = [];
  let column = 0;
  for (const [index, token] of tokens.entries()) {
    if (token.type === "thead_open") heads = [];
    if (token.type === "tr_open") column = 0;
    if (token.type === "th_open") heads.push(plainText(tokens[index + 1]));
    if (token.type === "td_open") token.attrSet("data-label", heads[column++] ?? "");
  }
}

const plainText = ({ children }) => children.map(({ content }) => content).join("");
