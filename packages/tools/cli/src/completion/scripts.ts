import type { CommandNode, Completion } from "./command-tree.ts";

/** The shells that the command line can be completed in. */
export const shells = ["bash", "zsh", "fish"] as const;

export type Shell = (typeof shells)[number];

/** The script that teaches a shell the commands. */
export function completionScript(shell: Shell, nodes: readonly CommandNode[]): string {
  return scripts[shell](nodes);
}

const scripts: Readonly<Record<Shell, (nodes: readonly CommandNode[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

const bashFiles = `COMPREPLY=($(compgen -f -- "$cur")); compopt -o filenames 2>/dev/null`;

function bashWords(list: readonly string[]): string {
  return `COMPREPLY=($(compgen -W ${quoted(list.join(" "))} -- "$cur"))`;
}

function bashAnswer(completion: Completion): string {
  if (completion.kind === "words") return bashWords(completion.words);
  return completion.kind === "file" ? bashFiles : ":";
}

// Without mapfile and with compopt where there is one, for the bash 3.2 of macOS.
function bashScript(nodes: readonly CommandNode[]): string {
  return `# eval "$(countersign completion bash)", in ~/.bashrc
_countersign() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} at=countersign i IFS=$' \\t\\n'
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at \${COMP_WORDS[i]}" in
      ${pathPattern(nodes)}) at="$at \${COMP_WORDS[i]}" ;;
    esac
  done
  IFS=$'\\n'
  case "$at $prev" in
${valueCases(
  nodes,
  (completion) => `IFS=$' \\t\\n'; ${bashAnswer(completion)}; return`,
  (file) => `${bashAnswer(file)}; return`,
)}
  esac
  IFS=$' \\t\\n'
  case "$at" in
${nodes
  .map((node) => {
    const list = [...node.subcommands, ...node.flags].map(({ word }) => word);
    const argument = node.argument?.kind === "words" ? node.argument.words : [];
    const all = bashWords([...argument, ...list]);
    const body =
      node.argument?.kind === "file"
        ? `if [[ $cur == -* ]]; then ${all}; else IFS=$'\\n'; ${bashFiles}; fi`
        : all;
    return `    ${quoted(node.path)}) ${body} ;;`;
  })
  .join("\n")}
  esac
}
complete -F _countersign countersign
`;
}

function zshAnswer(completion: Completion): string {
  if (completion.kind === "words") return `compadd -- ${completion.words.map(quoted).join(" ")}`;
  return completion.kind === "file" ? "_files" : "_message value";
}

function zshDescribed(words: CommandNode["subcommands"]): string {
  return words
    .map(({ word, description }) => quoted(`${word.replaceAll(":", "\\:")}:${description}`))
    .join(" ");
}

function zshScript(nodes: readonly CommandNode[]): string {
  return `#compdef countersign
# countersign completion zsh > a file _countersign in a folder of $fpath, or eval it behind compinit
_countersign() {
  local at=countersign i
  local -a list
  for ((i = 2; i < CURRENT; i++)); do
    case "$at $words[i]" in
      ${pathPattern(nodes)}) at="$at $words[i]" ;;
    esac
  done
  case "$at $words[CURRENT-1]" in
${valueCases(nodes, (completion) => `${zshAnswer(completion)}; return`)}
  esac
  case "$at" in
${nodes
  .map(({ path, subcommands, flags, argument }) => {
    const lines = [
      ...(subcommands.length === 0 ? [] : [`list=(${zshDescribed(subcommands)}); _describe command list`]),
      ...(argument === undefined ? [] : [zshAnswer(argument)]),
      `[[ $PREFIX == -* ]] && { list=(${zshDescribed(flags)}); _describe -o flag list }`,
    ];
    return `    ${quoted(path)})\n${lines.map((line) => `      ${line}\n`).join("")}      ;;`;
  })
  .join("\n")}
  esac
}
if [[ $funcstack[1] == _countersign ]]; then _countersign "$@"; else compdef _countersign countersign; fi
`;
}

function fishScript(nodes: readonly CommandNode[]): string {
  const line = (path: string, rest: string): string =>
    `complete -c countersign -n ${quoted(`__countersign_at ${path}`)} ${rest}`;
  const valueOf = (completion: Completion | undefined): string => {
    if (completion === undefined) return "";
    if (completion.kind === "words") return ` -x -a ${quoted(completion.words.join(" "))}`;
    return completion.kind === "file" ? " -r -F" : " -x";
  };
  const lines = nodes.flatMap(({ path, subcommands, flags, argument }) => [
    ...subcommands.map(({ word, description }) => line(path, `-a ${quoted(word)} -d ${quoted(description)}`)),
    ...flags.map(({ word, description, value }) =>
      line(path, `-l ${quoted(word.slice(2))} -d ${quoted(description)}${valueOf(value)}`),
    ),
    ...(argument?.kind === "words" ? [line(path, `-a ${quoted(argument.words.join(" "))}`)] : []),
    ...(argument?.kind === "file" ? [line(path, "-F")] : []),
  ]);
  return `# countersign completion fish > ~/.config/fish/completions/countersign.fish
function __countersign_at
    set -l at countersign
    for word in (commandline -opc)[2..]
        switch "$at $word"
            case ${paths(nodes).map(quoted).join(" ")}
                set at "$at $word"
        end
    end
    test "$at" = "$argv"
end
complete -c countersign -f
${lines.join("\n")}
`;
}

function paths(nodes: readonly CommandNode[]): string[] {
  return nodes.map(({ path }) => path).filter((path) => path.includes(" "));
}

function pathPattern(nodes: readonly CommandNode[]): string {
  return paths(nodes).map(quoted).join(" | ");
}

/** One case for each flag with a value, of `$at $prev`. */
function valueCases(
  nodes: readonly CommandNode[],
  answer: (completion: Completion) => string,
  file: (completion: Completion) => string = answer,
): string {
  return nodes
    .flatMap(({ path, flags }) =>
      flags.map(({ word, value }) => {
        if (value === undefined) return undefined;
        return `    ${quoted(`${path} ${word}`)}) ${value.kind === "file" ? file(value) : answer(value)} ;;`;
      }),
    )
    .filter((line) => line !== undefined)
    .join("\n");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
