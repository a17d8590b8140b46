// Every page, in the order in which it is offered: that of site/pages/README.md, where readers of the repository find them.
// prepare.mjs fails where one of these is missing, or a page is not here.
import path from "node:path";
import { pageOf } from "./scripts/links.mjs";
import { read } from "./scripts/source.mjs";

const [, ...groups] = read("site/pages/README.md").split(/^## /m);

export const navigation = groups.map((group) => {
  const [text] = group.split("\n", 1);
  const links = [...group.matchAll(/^- \[(.+)\]\((.+)\)$/gm)];
  return {
    text,
    items: links.map(([, title, file]) => ({
      text: title,
      page: pageOf(path.posix.join("site/pages", file)),
    })),
  };
});

/** At the end of the list: packages, API, and what changed. The first two are long, and have a page that lists them. */
export function referencePages(packages, api) {
  return [
    {
      text: "Packages",
      folded: true,
      page: "reference/packages",
      items: packages.map((name) => ({ text: name, page: `reference/packages/${name}` })),
    },
    {
      text: "API",
      folded: true,
      page: "reference/api",
      items: api.map((name) => ({ text: name, page: `reference/api/${name}` })),
    },
    {
      text: "The project",
      items: [
        { text: "Architecture", page: "concepts/architecture" },
        { text: "Changelog", page: "changelog" },
        { text: "Security", page: "security" },
      ],
    },
  ];
}
