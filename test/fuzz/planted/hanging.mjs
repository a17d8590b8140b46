// An input with a "z" never ends.
export const seeds = ["an input"];
export const dictionary = ["z"];
export const scripts = /\/fuzz\/planted\/hanging\.mjs$/;

export function run(input) {
  while (input.includes(0x7a)) continue;
  return "run";
}
