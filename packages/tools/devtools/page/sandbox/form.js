// Fields that say themselves why they were refused.

import { field, html, plainText } from "./kit.js";

/** The service's words under the name of the field that they begin with, or of `otherwise`. */
export function problemAt(message, names, otherwise) {
  return { [names.find((name) => message.startsWith(name)) ?? otherwise]: message };
}

/** A field of one line, and beside it what is wrong with it. */
export function checkedField(label, name, problem, members) {
  const input = html`<input
    name=${name}
    aria-invalid=${problem === undefined ? undefined : "true"}
    ...${plainText}
    ...${members}
  />`;
  return field(label, input, problemText(problem));
}

export function problemText(problem) {
  return problem !== undefined && html`<span class="problem" role="alert">${problem}</span>`;
}
