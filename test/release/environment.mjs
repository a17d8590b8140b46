// What a release must not depend on: the user's own npm and git, and what npm hands on to the scripts that it runs.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const unwanted = [
  /^npm_(config|package|lifecycle)_/i,
  /^(npm_token|npm_id_token|node_auth_token|actions_id_token_.*)$/i,
  /^git_/i,
  /^(node_env|init_cwd)$/i,
];

/**
 * The environment of everything that the dry run starts. npm reads `userconfig`, which names the registry and a token for it; git
 * has an identity, and nothing of the user's: no hooks, no signing of commits.
 */
export function releaseEnvironment(env, work) {
  const kept = Object.entries(env).filter(([name]) => !unwanted.some((pattern) => pattern.test(name)));
  const home = join(work, "config");
  mkdirSync(home, { recursive: true });
  const gitConfig = join(home, "gitconfig");
  const emptyConfig = join(home, "npmrc-global");
  // A container's checkout often belongs to somebody else than who runs there.
  writeFileSync(gitConfig, "[safe]\n\tdirectory = *\n[init]\n\tdefaultBranch = main\n");
  writeFileSync(emptyConfig, "");
  const who = { NAME: "Release dry run", EMAIL: "release@dry-run.invalid" };
  const identity = ["AUTHOR", "COMMITTER"].flatMap((role) =>
    Object.entries(who).map(([part, value]) => [`GIT_${role}_${part}`, value]),
  );
  return {
    ...Object.fromEntries(kept),
    ...Object.fromEntries(identity),
    GIT_CONFIG_GLOBAL: gitConfig,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_TERMINAL_PROMPT: "0",
    NPM_CONFIG_USERCONFIG: join(home, "npmrc"),
    NPM_CONFIG_GLOBALCONFIG: emptyConfig,
    NPM_CONFIG_UPDATE_NOTIFIER: "false",
    // Versions come and go on this registry: what npm remembers of them is for this run alone.
    NPM_CONFIG_CACHE: join(work, "npm-cache"),
    NX_DAEMON: "false",
    CI: "true",
  };
}

/** What npm reads from then on: one registry for every name, and who publishes there. */
export function writeUserConfig(env, { url, token }) {
  const lines = [
    `registry=${url}`,
    `${url.replace(/^https?:/, "")}:_authToken=${token}`,
    "audit=false",
    "fund=false",
  ];
  writeFileSync(env.NPM_CONFIG_USERCONFIG, `${lines.join("\n")}\n`);
}
