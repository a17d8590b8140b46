// A body as people read it.

import { indented } from "./json.js";
import { block, visible } from "./kit.js";

/** JSON has its lines indented; it is copied as it was sent. */
export function bodyBlock(name, text, members = {}) {
  return block(name, text, { ...members, shown: visible(indented(text)) });
}
