// Where this machine has the servers that tests start for themselves.
import { spawnSync } from "node:child_process";
import { accessSync, constants, readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import process from "node:process";

/** The folder with `postgres` and `initdb`, undefined when there is none. */
export function postgresFolder() {
  const packaged = listFolder("/usr/lib/postgresql")
    .toSorted((a, b) => Number(b) - Number(a))
    .map((version) => path.join("/usr/lib/postgresql", version, "bin"));
  return [...pathFolders(), ...packaged].find(
    (folder) => isExecutable(folder, "postgres") && isExecutable(folder, "initdb"),
  );
}

export function redisServer() {
  return inPath("redis-server") ?? inPath("valkey-server");
}

/** Each undefined where it is missing. */
export function mariadbPrograms() {
  return { install: inPath("mariadb-install-db"), server: inPath("mariadbd") };
}

/**
 * How `mysqld` is run: that of PATH, unless it is MariaDB's by another name, or what get-mysql.sh has unpacked, by the loader and the
 * libraries that came with it. Undefined where it is missing.
 */
export function mysqlProgram() {
  const installed = inPath("mysqld");
  if (installed !== undefined && !/MariaDB/i.test(versionOf(installed)))
    return { command: installed, args: [] };
  const root = mysqlFolder();
  if (!isExecutable(path.join(root, "usr/sbin"), "mysqld")) return undefined;
  const libraries = listFolder(path.join(root, "usr/lib")).find((name) => name.endsWith("-linux-gnu")) ?? "";
  const folder = path.join(root, "usr/lib", libraries);
  const loader = listFolder(folder).find((name) => /^ld-linux.*\.so/.test(name));
  if (loader === undefined) return undefined;
  return {
    command: path.join(folder, loader),
    args: [
      "--library-path",
      [folder, path.join(root, "usr/lib/mysql/private")].join(":"),
      path.join(root, "usr/sbin/mysqld"),
    ],
    // Which the server would look for where its package puts them.
    settings: [
      `--basedir=${path.join(root, "usr")}`,
      `--lc-messages-dir=${path.join(root, "usr/share/mysql")}`,
      `--plugin-dir=${path.join(root, "usr/lib/mysql/plugin")}`,
    ],
  };
}

/** As get-mysql.sh has it. */
function mysqlFolder() {
  const { MYSQL_FOLDER: given, XDG_CACHE_HOME: cache, HOME: home = "" } = process.env;
  return given ?? path.join(cache ?? path.join(home, ".cache"), "countersign-mysql");
}

function versionOf(program) {
  const { stdout } = spawnSync(program, ["--no-defaults", "--version"], { encoding: "utf8" });
  return stdout ?? "";
}

export function pgbouncer() {
  return inPath("pgbouncer");
}

export function prometheusServer() {
  return inPath("prometheus");
}

/**
 * PostgreSQL and PgBouncer refuse to run as root: there they get the user `postgres`, or `nobody`. Empty for anybody else,
 * undefined when root has no such user.
 */
export function unprivilegedOwner() {
  if (process.getuid?.() !== 0) return {};
  const users = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"));
  const user =
    users.find(([name]) => name === "postgres") ?? users.find(([name]) => name === "nobody") ?? undefined;
  return user && { uid: Number(user[2]), gid: Number(user[3]) };
}

/** Says unmissably what is not tested for want of a server; throws where everything has to run, with CI set. */
export function reportMissing(server, consequence) {
  const text = `${server} is missing on this machine: ${consequence}`;
  if (isContinuousIntegration()) throw new Error(`${text} CI is set, so this is an error.`);
  reportLeftOut(text);
}

/** Says unmissably what is not tested. */
export function reportLeftOut(text) {
  // In a test file the reporter of the run says it at the end.
  const written = globalThis[Symbol.for("countersign.test.written")];
  if (written === undefined) process.stderr.write(notTested([text]));
  else written.leaveOut(text);
}

/** The block in which a run says what it has not tested. */
export function notTested(texts) {
  const line = "=".repeat(100);
  return `\n${line}\n${texts.map((text) => `NOT TESTED: ${text}\n`).join("")}${line}\n\n`;
}

/** Whether a missing server is an error. */
export function isContinuousIntegration() {
  return ["true", "1"].includes(process.env["CI"] ?? "");
}

function inPath(name) {
  const folder = pathFolders().find((candidate) => isExecutable(candidate, name));
  return folder && path.join(folder, name);
}

// Debian keeps servers in sbin, which is not in the PATH of everybody.
function pathFolders() {
  const folders = (process.env["PATH"] ?? "")
    .split(path.delimiter)
    .filter((folder) => path.isAbsolute(folder));
  return [...folders, "/usr/local/sbin", "/usr/sbin"];
}

function listFolder(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function isExecutable(folder, name) {
  try {
    accessSync(path.join(folder, name), constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
