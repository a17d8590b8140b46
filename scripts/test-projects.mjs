// What has to be built for the tests that arguments of jest name: their packages or examples, and what their files mention.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { memberFolders } from "./workspace.mjs";

// Flags of jest whose value is the next argument, and no path of a test.
const withValue = new Set(
  `-c --config -t --testNamePattern -w --maxWorkers --outputFile --seed --coverageDirectory --testTimeout --shard`.split(
    " ",
  ),
);

// What tests share: its files are followed, as those that are named by a path.
const support = "@countersign/test-support/";

/**
 * The projects for `tsc -b`, in an order in which they can be built; undefined when an argument names anything but folders of
 * packages and examples below `root`: then everything is needed.
 */
export function projectsFor(args, root) {
  const named = args.filter((arg, index) => !arg.startsWith("-") && !withValue.has(args[index - 1]));
  if (named.length === 0) return undefined;
  const members = membersOf(root);
  const chosen = named.map((arg) => {
    const place = path.isAbsolute(arg) ? path.relative(root, arg) : arg;
    return members.filter(({ folder }) => folder.startsWith(place) || place.startsWith(`${folder}/`));
  });
  if (chosen.some((found) => found.length === 0)) return undefined;
  const tested = [...new Set(chosen.flat())];
  const needed = tested.flatMap(({ folder }) =>
    mentionedBy(path.join(root, folder, "test"), { root, members }),
  );
  const projects = [...needed, ...tested].map(({ folder }) => folder);
  const ofTests = tested.flatMap(({ folder }) => [`${folder}/templates`, `${folder}/test`]);
  return [...new Set([...projects, ...ofTests])].filter((project) =>
    existsSync(path.join(root, project, "tsconfig.json")),
  );
}

/** The packages and examples: each one's folder from the root, and its name. */
function membersOf(root) {
  return memberFolders(root).map((folder) => {
    const manifest = readFileSync(path.join(root, folder, "package.json"), "utf8");
    return { folder, name: JSON.parse(manifest).name };
  });
}

/** The members whose name is imported, or whose place stands as a text, in the files of a folder, or in those that these mention. */
function mentionedBy(folder, { root, members }) {
  const waiting = filesUnder(folder);
  const seen = new Set(waiting);
  const found = new Set();
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    const text = readFileSync(file, "utf8");
    const imported = textsIn(text, /\b(?:from|import|require|resolve)\b[\s(]*["']([^"']+)["']/g);
    for (const member of members)
      if (imported.some((name) => `${name}/`.startsWith(`${member.name}/`))) found.add(member);
    for (const written of textsIn(text, /["'`]([^"'`\s]*\/[^"'`\s]+)["'`]/g)) {
      const isFollowed = written.startsWith(".") || written.startsWith(support);
      const other = written.startsWith(".")
        ? path.resolve(path.dirname(file), written)
        : path.join(root, written.replace(support, "test/support/"));
      const place = path.relative(root, other).replaceAll(path.sep, "/");
      for (const member of members) if (`${place}/`.startsWith(`${member.folder}/`)) found.add(member);
      if (isFollowed && !seen.has(other) && isFile(other)) {
        seen.add(other);
        waiting.push(other);
      }
    }
  }
  return [...found];
}

const textsIn = (text, pattern) => [...text.matchAll(pattern)].map(([, found]) => found);

const isFile = (file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true;

function filesUnder(folder) {
  return listOf(folder)
    .filter((name) => name !== "node_modules")
    .flatMap((name) => {
      const entry = path.join(folder, name);
      return isFile(entry) ? [entry] : filesUnder(entry);
    });
}

function listOf(folder) {
  return statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true
    ? readdirSync(folder).toSorted()
    : [];
}
