// The code beside the title of the home page: lines of the example that the page shows whole, so they compile.
import { createMarkdownRenderer } from "vitepress";
import { fileText } from "../../scripts/file-text.mjs";
import { pagesFolder } from "../../scripts/source.mjs";
import { markdown } from "../markdown.mjs";

export default {
  async load() {
    const text = fileText("examples/snippets/src/integration.ts", { region: "hero" });
    const renderer = await createMarkdownRenderer(pagesFolder, markdown);
    return renderer.render(`\`\`\`ts\n${text.trimEnd()}\n\`\`\``);
  },
};
