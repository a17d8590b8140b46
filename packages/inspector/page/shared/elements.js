// Parts of the document. Text is only ever set as text.

/** An element: `on…` members listen, `class` and other members are attributes, undefined and false ones are left out. */
export function h(tag, members = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(members)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== false));
  return element;
}

/** A word with a colour of its own; it never speaks by the colour alone. */
export function badge(text, tone) {
  return h("span", { class: `badge ${tone}` }, text);
}

/** The time of a day in UTC, with the day where it is another one. */
export function time(ms) {
  const [day, clock] = new Date(ms).toISOString().split("T");
  const text = `${clock.slice(0, 8)}Z`;
  return h(
    "time",
    { datetime: `${day}T${clock}` },
    Math.abs(Date.now() - ms) < 43_200_000 ? text : `${day} ${text}`,
  );
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

/** The type of an event, which a narrow window breaks behind a dot. */
export function typeName(type) {
  return visible(type)
    .split(/(?<=[._])/)
    .flatMap((part) => [part, h("wbr")]);
}

/** A block of text with a name, and a button that copies it as it is. */
export function block(name, text, { open = true } = {}) {
  const lines = h("pre", { tabindex: "0", role: "region", "aria-label": name }, visible(text));
  return h(
    "details",
    { class: "block", open },
    h("summary", {}, name),
    h("div", { class: "text" }, lines, copyButton(text, name)),
  );
}

export function headerLines(headers) {
  return headers.map(([name, value]) => `${name}: ${value}`).join("\n");
}

export function copyButton(text, name) {
  const copy = h("button", { type: "button", class: "copy", "aria-label": `Copy: ${name}` }, "Copy");
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Not allowed";
    }
    setTimeout(() => (copy.textContent = "Copy"), 1500);
  });
  return copy;
}

/** A button that says what it would do, and why it does not, instead of losing the focus. */
export function setDisabled(element, isDisabled) {
  if (isDisabled) element.setAttribute("aria-disabled", "true");
  else element.removeAttribute("aria-disabled");
}

function onPress(element, press) {
  element.addEventListener("click", () => {
    if (element.getAttribute("aria-disabled") !== "true") press();
  });
  return element;
}

export function button(text, press, members = {}) {
  return onPress(h("button", { type: "button", ...members }, text), press);
}

/** A field with its label. */
export function field(label, input, hint) {
  return h("label", { class: "field" }, h("span", {}, label), input, hint && h("small", {}, hint));
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

/** Newer and older pages of a list, and where one is. */
export function pager({ onNewer, onOlder }) {
  const place = h("span", { class: "place" });
  const newer = button("Newer", onNewer);
  const older = button("Older", onOlder);
  const element = h("div", { class: "pager" }, place, newer, older);
  return {
    element,
    update({ first, shown, total }) {
      const isWhole = shown >= total;
      const range = `${first + 1}–${first + shown} of ${total.toLocaleString("en")}`;
      place.textContent = isWhole ? `${total}` : range;
      setDisabled(newer, first === 0);
      setDisabled(older, first + shown >= total);
      for (const one of [newer, older]) one.hidden = isWhole;
      element.hidden = total === 0;
    },
  };
}
