// A fault that four bytes in a row open. Each of them is a block of its own, so that coverage leads there, one after the other.
export const seeds = ["----"];
export const dictionary = [];
export const scripts = /\/fuzz\/planted\/nested\.mjs$/;

export function run(input) {
  let depth = 0;
  if (input[0] === 0x7b) {
    depth = 1;
    if (input[1] === 0xfe) {
      depth = 2;
      if (input[2] === 0x19) {
        depth = 3;
        if (input[3] === 0xa2) throw new Error("the planted fault");
      }
    }
  }
  return depth >= 0 ? "run" : "never";
}
