// What a release changes in texts that lerna does not know. Each function takes the text of a file and returns the new one.

const title = "# Changelog";
const unreleased = "## Unreleased";

/**
 * Makes one section of a version from the notes under "Unreleased", which people wrote, and the list of commits that lerna has put
 * above the title of the file. Throws where either is missing: a release whose notes went elsewhere is not to be published.
 */
export function composeChangelog(text, version, date) {
  const start = text.indexOf(`\n${title}\n`);
  const heading = new RegExp(String.raw`^#+ \[?${version.replaceAll(".", String.raw`\.`)}\]?.*$`, "m").exec(
    text.slice(0, Math.max(start, 0)),
  );
  if (heading === null) throw new Error(`CHANGELOG.md: no commits of ${version} stand above "${title}"`);
  const commits = text.slice(heading.index + heading[0].length, start).trim();
  const written = text.slice(start + title.length + 2).trim();
  if (!written.startsWith(`${unreleased}\n`) && written !== unreleased) {
    throw new Error(`CHANGELOG.md: "${unreleased}" does not stand under "${title}"`);
  }
  const notes = written.slice(unreleased.length).trim();
  // With the link to what has changed since the last release, where lerna made one.
  const release = heading[0].replace(/^#+/, "##").replace(/\(\d{4}-\d\d-\d\d\)$/, `(${date})`);
  return `${[title, unreleased, release, ...notesAndCommits(notes, commits)].join("\n\n")}\n`;
}

// Notes may go on to older versions, whose sections stay where they are.
function notesAndCommits(notes, commits) {
  const older = notes.search(/^## /m);
  const own = (older < 0 ? notes : notes.slice(0, older)).trim();
  const rest = older < 0 ? "" : notes.slice(older).trim();
  return [own, commits.replaceAll(/\n{3,}/g, "\n\n"), rest].filter((part) => part !== "");
}

/** Sets the ranges of peer dependencies on our own packages to the version: lerna raises dependencies alone. */
export function raisePeers(manifest, version, isOwn) {
  const parsed = JSON.parse(manifest);
  const peers = Object.entries(parsed.peerDependencies ?? {});
  if (!peers.some(([name]) => isOwn(name))) return manifest;
  const raised = peers.map(([name, range]) => [name, isOwn(name) ? `^${version}` : range]);
  return `${JSON.stringify({ ...parsed, peerDependencies: Object.fromEntries(raised) }, null, 2)}\n`;
}

/** Names the minor version in the table of supported versions. Throws when there is no such table. */
export function supportedVersions(text, version) {
  const minor = version.split(".").slice(0, 2).join(".");
  const table = /^\| \d+\.\d+\.x ( *\| yes.*\n)\| < \d+\.\d+ ( *\| no)/m;
  if (!table.test(text)) throw new Error("SECURITY.md: the table of supported versions is missing");
  return text.replace(table, `| ${minor}.x $1| < ${minor} $2`);
}
