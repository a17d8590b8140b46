// A reader types what a page shows, from its top to its end: tables are there before a payout comes, and what is installed can be.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { memberFolders } from "../../scripts/workspace.mjs";
import { pageFiles } from "../../site/scripts/source.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");
const places = [
  "README.md",
  ...pageFiles(),
  ...memberFolders().map((folder) => `${folder}/README.md`),
].filter((file) => existsSync(join(root, file)));

interface Fence {
  readonly language: string;
  readonly code: string;
  readonly before: string;
}

const fencesOf = (text: string): readonly Fence[] =>
  [...text.matchAll(/^( *)```(\w+)[^\n]*\n([\s\S]*?)^ *```$/gm)].map((match) => {
    const [, , language = "", code = ""] = match;
    return { language, code, before: text.slice(0, match.index) };
  });

const scripts = new Set(["ts", "js", "mjs"]);
const onServer =
  /\bfrom(?:Pg|PostgresJs|Prisma|Drizzle|Kysely|Knex|TypeOrm|Sequelize|MikroOrm|Mysql2)\(|createStores\(\{ ?pool\b/;

const shown = places.flatMap((place) =>
  fencesOf(read(place))
    .filter(({ language, code }) => scripts.has(language) && onServer.test(code) && !/\bmigrate\(/.test(code))
    .map(({ before }, index) => [`${place} (${index + 1})`, before] as const),
);

test("stores on servers are shown on many pages", () => {
  expect(shown.length).toBeGreaterThan(15);
});

test.each(shown)("%s: its reader has installed the command, and migrated", (_place, before) => {
  const commands = fencesOf(`${before}\n`)
    .filter(({ language }) => language === "sh")
    .map(({ code }) => code)
    .join("");
  expect(commands).toMatch(/^npm install .*@countersign\/cli\b[^]*^npx countersign migrate --store-url/m);
});

const packageName = /^(?:@[\w-]+\/)?[\w.-]+(?:@\S+)?$/;
const installing = places.filter((place) => /^ *npm install /m.test(read(place)));

test.each(installing)("%s installs packages by their names, each line as a whole", (place) => {
  const text = read(place);
  // A line that goes on must not go on with nothing.
  expect(text).not.toMatch(/^ *npm install .*\\\n\s*$/m);
  const lines = text.replaceAll(/\\\n */g, "").matchAll(/^ *npm install ([^#\n]*)/gm);
  const words = [...lines].flatMap(([, line = ""]) => line.trim().split(/ +/));
  expect(words.filter((word) => !word.startsWith("-") && !packageName.test(word))).toEqual([]);
});
