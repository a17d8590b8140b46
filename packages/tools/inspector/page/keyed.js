// Lists that change while somebody is in them: an entry keeps its element, and with it the focus.

/** Shows entries in `parent`, in order; `make(value)` gives `{ element, update(value) }`. */
export function keyedList(parent, make) {
  let shown = new Map();
  return {
    size: () => shown.size,
    entries: () => shown.entries(),
    /** `entries` are pairs of a key and a value. */
    update(entries) {
      const next = new Map();
      for (const [key, value] of entries) {
        const known = shown.get(key);
        known?.update(value);
        next.set(key, known ?? make(value));
      }
      const isLost = removeOthers(shown, next);
      shown = next;
      inOrder(parent, [...next.values()]);
      if (isLost) parent.lastElementChild?.querySelector("a, button")?.focus({ preventScroll: true });
    },
  };
}

/** Whether the focus was in one of them. */
function removeOthers(shown, next) {
  let isLost = false;
  for (const [key, { element }] of shown) {
    if (next.has(key)) continue;
    isLost ||= element.contains(document.activeElement);
    element.remove();
  }
  return isLost;
}

// What stands in its place is not moved: an element that moves loses the focus.
function inOrder(parent, entries) {
  let at = parent.firstElementChild;
  for (const { element } of entries) {
    if (element === at) at = at.nextElementSibling;
    else parent.insertBefore(element, at);
  }
}

/** Puts new parts in the place of those there; what was opened, and what has the focus, is so again by its name. */
export function replaceParts(place, parts) {
  const open = new Map([...place.querySelectorAll("details")].map((each) => [nameOf(each), each.open]));
  const focused = place.contains(document.activeElement) ? nameOf(document.activeElement) : undefined;
  place.replaceChildren(...parts);
  for (const each of place.querySelectorAll("details")) each.open = open.get(nameOf(each)) ?? each.open;
  if (focused === undefined) return;
  const same = [...place.querySelectorAll("a, button, input, summary, textarea, [tabindex]")];
  same.find((each) => nameOf(each) === focused)?.focus({ preventScroll: true });
}

function nameOf(element) {
  const within = element.parentElement.closest("[data-name]")?.dataset.name ?? "";
  const summary = element.querySelector("summary")?.textContent;
  const { name = element.getAttribute("aria-label") ?? summary ?? element.textContent } = element.dataset;
  return `${within} ${element.tagName} ${name}`;
}
