// The signature base that is expected here, and the signer's beside it, with the first place in which they differ.

import { Component, CopyButton, field, html } from "./kit.js";

const longestLine = 1000;
const names = { "\r": String.raw`\r`, "\n": String.raw`\n`, "\t": String.raw`\t` };

/** A base in the form in which the expected one comes: control characters visible, line feeds shown and kept. */
export function visibleBase(base) {
  const lines = base.split("\n");
  return lines.map((line, index) => visibleLine(index < lines.length - 1 ? `${line}\n` : line)).join("\n");
}

function visibleLine(line) {
  const shown = line
    .slice(0, longestLine)
    .replaceAll(
      /[^\u0020-\u007e]/g,
      (char) => names[char] ?? `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
  return line.length > longestLine ? `${shown}... (${line.length} characters)` : shown;
}

/** Line and column, from 1, in which two bases in that form differ first; undefined where they do not. */
export function firstDifference(expected, signer) {
  const [one, other] = [expected.split("\n"), signer.split("\n")];
  for (let line = 0; line < Math.max(one.length, other.length); line += 1) {
    const [left = "", right = ""] = [one[line], other[line]];
    if (left === right || isSameCredential(left, right)) continue;
    let column = 0;
    while (column < left.length && left[column] === right[column]) column += 1;
    return { line: line + 1, column: column + 1 };
  }
  return undefined;
}

// Of a credential the expected base has the name alone.
function isSameCredential(expected, signer) {
  const name = /^("[^"]*"[^:]*:) \(not shown\)/.exec(expected)?.[1];
  return name !== undefined && signer.startsWith(name);
}

/** Both bases of a request; what somebody pastes as the signer's is kept as long as the request is shown. */
export class Bases extends Component {
  render({ expected }, { pasted = "" }) {
    const signer = pasted === "" ? undefined : visibleBase(pasted);
    const difference = signer === undefined ? undefined : firstDifference(expected, signer);
    const input = html`<textarea
      rows="3"
      spellcheck=${false}
      oninput=${({ target }) => this.setState({ pasted: target.value })}
    />`;
    const hint = "As it was signed, from its log or debugger: it is compared here, and goes nowhere.";
    return html`<div class="bases">
      <div class="text">
        ${baseLines(expected, signer, difference)}
        <${CopyButton} text=${expected} name="the expected signature base" />
      </div>
      <p role="status" class=${difference === undefined ? "same-base" : "other-base"}>
        ${signer !== undefined && resultOf(difference)}
      </p>
      ${field("The signer's base", input, hint)}
    </div>`;
  }
}

function resultOf(difference) {
  if (difference === undefined) {
    return "Both are the same: what is left is the key that the signer has, or its algorithm.";
  }
  const { line, column } = difference;
  return `They differ first in line ${line}, at character ${column}. The text field of this page drops carriage returns.`;
}

/** The lines of the expected base with their numbers, and those of the signer beside them. */
function baseLines(expected, signer, difference) {
  const [ours, theirs] = [expected.split("\n"), signer?.split("\n") ?? []];
  const isAlone = signer === undefined;
  const lines = Array.from({ length: Math.max(ours.length, theirs.length) }, (_, index) => {
    const column = difference?.line === index + 1 ? difference.column : undefined;
    return html`<li class=${column === undefined ? undefined : "differs"}>
      ${lineOf(ours[index], "expected", column)} ${!isAlone && lineOf(theirs[index], "signer's", column)}
    </li>`;
  });
  const name = `Expected signature base${isAlone ? "" : ", the signer's beside it"}`;
  return html`<ol class=${isAlone ? "base" : "base both"} tabindex="0" aria-label=${name}>
    ${lines}
  </ol>`;
}

/** One line of a base; from where it differs it has a mark. */
function lineOf(line, whose, column) {
  if (line === undefined) return html`<span data-whose=${whose} class="none">no such line</span>`;
  const end = column === undefined ? line.length : column - 1;
  const rest = column !== undefined && html`<mark>${line.slice(end) || "(its end)"}</mark>`;
  return html`<span data-whose=${whose}>${line.slice(0, end)}${rest}</span>`;
}
