// Parts of the document, made by preact and htm. Text is only ever set as text.

import htm from "./htm.js";
import { Component, h, render } from "./preact.js";

export { Component };

/** A template of elements: html`<p class=${name}>${text}</p>`. */
export const html = htm.bind(h);

const focusable = "a, button, input, select, summary, textarea, [tabindex]";

/** Shows parts in a place. The focus stays; if its element is gone, the one at the same position gets it. */
export function show(place, parts) {
  const focused = document.activeElement;
  const index = [...place.querySelectorAll(focusable)].indexOf(focused);
  render(parts, place);
  if (index === -1 || focused === document.activeElement) return;
  const others = [...place.querySelectorAll(focusable)];
  const next = focused.isConnected ? focused : (others[index] ?? others.at(-1));
  next?.focus({ preventScroll: true });
}

/** A word with a colour of its own; it never speaks by the colour alone. */
export function badge(text, tone) {
  return html`<span class="badge ${tone}">${text}</span>`;
}

const two = (number) => String(number).padStart(2, "0");

/** A local time with its date; its title is in UTC. */
export function time(ms) {
  const at = new Date(ms);
  const day = [at.getFullYear(), at.getMonth() + 1, at.getDate()].map(two).join("-");
  const clock = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":");
  return html`<time datetime=${at.toISOString()} title=${at.toISOString()}>${`${day} ${clock}`}</time>`;
}

/** How long ago, in the largest unit that fits. */
function ago(ms) {
  const seconds = Math.max(0, Math.round((Date.now() - ms) / 1000));
  if (seconds < 120) return `${seconds} s ago`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min ago`;
  return seconds < 172_800
    ? `${Math.round(seconds / 3600)} h ago`
    : `${Math.round(seconds / 86_400)} days ago`;
}

/** A time, and how long ago it is, which stays right. */
export class When extends Component {
  componentDidMount() {
    this.timer = setInterval(() => this.forceUpdate(), 5000);
  }
  componentWillUnmount() {
    clearInterval(this.timer);
  }
  render({ ms }) {
    return html`<span>${time(ms)}${" "}<small>${ago(ms)}</small></span>`;
  }
}

/** A duration in milliseconds as a person reads it. */
export function duration(ms) {
  if (ms >= 10_000) return `${(ms / 1000).toFixed(0)} s`;
  return ms >= 100 ? `${ms.toFixed(0)} ms` : `${ms.toFixed(ms < 1 ? 2 : 1)} ms`;
}

export function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
const escapes = { "\n": String.raw`\n`, "\r": String.raw`\r`, "\t": String.raw`\t` };

/** The sign of a character that would not be seen. Not one of Control Pictures, which few fonts have. */
export function signOf(char) {
  return escapes[char] ?? `\\u{${char.codePointAt(0).toString(16)}}`;
}

/** Bytes as text: what would not be seen, or would turn the text around, has a sign; a line feed stays one. */
export function visible(text) {
  return text.replaceAll(unseen, (char) => (char === "\n" ? char : signOf(char)));
}

/** The type of an event, which a narrow window breaks after a dot. */
export function typeName(type) {
  return visible(type)
    .split(/(?<=[._])/)
    .map((part) => html`${part}<wbr />`);
}

/** Text of a peer; undefined where there is none. */
export function code(text) {
  return text === undefined ? undefined : html`<code>${visible(text)}</code>`;
}

/** Text of the documentation, in which names of code stand in backticks. */
export function prose(text) {
  return text.split("`").map((part, index) => (index % 2 === 0 ? visible(part) : code(part)));
}

/** A table that a telephone shows as a list: its parts say their roles, which their display takes from them. `columns` are cells by name. */
export function table(label, columns, rows) {
  const names = Object.keys(columns);
  return html`<table role="table" aria-label=${label}>
    <thead role="rowgroup">
      <tr role="row">
        ${names.map((name) => html`<th role="columnheader" scope="col">${name}</th>`)}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${rows.map(
        (row) =>
          html`<tr role="row">
            ${names.map((name) => html`<td role="cell" data-label=${name}>${columns[name](row)}</td>`)}
          </tr>`,
      )}
    </tbody>
  </table>`;
}

/** A block of text with a name, and a button that copies it as it is. */
export function block(name, text, { open = true, shown = visible(text), copied = name, ...rest } = {}) {
  return html`<details class="block" open=${open}>
    <summary>${name}</summary>
    <div class="text">
      <pre tabindex="0" role="region" aria-label=${name} ...${rest}>${shown}</pre>
      <${CopyButton} text=${text} name=${copied} />
    </div>
  </details>`;
}

export function headerLines(headers) {
  return headers.map(([name, value]) => `${name}: ${value}`).join("\n");
}

export class CopyButton extends Component {
  async copy() {
    try {
      await navigator.clipboard.writeText(this.props.text);
      this.setState({ said: "Copied" });
    } catch {
      this.setState({ said: "Not allowed" });
    }
    setTimeout(() => this.setState({ said: "Copy" }), 1500);
  }
  render({ name }, { said = "Copy" }) {
    return html`<button type="button" class="copy" aria-label="Copy: ${name}" onclick=${() => this.copy()}>
      ${said}
    </button>`;
  }
}

/** A button that says what it would do: while it cannot be pressed it keeps the focus. */
export function button(text, press, { isDisabled = false, ...members } = {}) {
  return html`<button
    type="button"
    aria-disabled=${isDisabled || undefined}
    onclick=${isDisabled ? undefined : press}
    ...${members}
  >
    ${text}
  </button>`;
}

/** A field with its label. */
export function field(label, input, hint) {
  return html`<label class="field"
    ><span>${label}</span>${input}${hint && html`<small>${hint}</small>`}</label
  >`;
}

/** What every field of one line has. */
export const plainText = { spellcheck: false, autocomplete: "off" };

/** Names with their values; those that are undefined are left out. */
export function facts(pairs) {
  return html`<dl class="facts">
    ${pairs
      .filter(([, value]) => value !== undefined)
      .map(
        ([name, value]) =>
          html`<div>
            <dt>${name}</dt>
            <dd>${value}</dd>
          </div>`,
      )}
  </dl>`;
}

/** Lines for a shell with their names, ready to be copied. */
export function shellLines(pairs) {
  return html`<dl class="lines">
    ${pairs.map(
      ([name, text]) =>
        html`<div>
          <dt>${name}</dt>
          <dd><code tabindex="0">${visible(text)}</code><${CopyButton} text=${text} name=${name} /></dd>
        </div>`,
    )}
  </dl>`;
}

/** {@link shellLines}, to be opened. */
export function openedLines(pairs, members) {
  const calls = pairs.length > 1 ? "As API calls" : "As an API call";
  const summary = pairs[0][0] === "Command" ? "As a command and as an API call" : calls;
  return html`<details ...${members}>
    <summary>${summary}</summary>
    ${shellLines(pairs)}
  </details>`;
}

/** Runs the last of many wishes, at most once in `ms`. */
export function throttled(ms, work) {
  let timer;
  return () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      work();
    }, ms);
  };
}
