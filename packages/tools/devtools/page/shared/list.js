// Lists of which one page is shown, and one thing of a list in full beside it.

import { button, field, html, openedLines, plainText, throttled } from "./kit.js";
import { Refusal } from "./service.js";

/**
 * A page of a list, newest first. `read({ filter, search, before, offset })` gives `{ rows, total, lines }`: rows have an `id`, `lines` ask the
 * same from a shell.
 */
export function pagedList({ read, redraw, pageSize }) {
  const list = { rows: [], total: undefined, lines: undefined, filter: "", search: "" };
  // The rows before which this page and each newer one begin.
  let befores = [undefined];
  const first = () => (befores.length - 1) * pageSize;

  async function load() {
    const wanted = befores;
    const { rows, total, lines } = await read({
      filter: list.filter,
      search: list.search,
      before: wanted.at(-1),
      offset: first(),
    });
    // Another page was asked for meanwhile.
    if (wanted !== befores) return;
    Object.assign(list, { rows, lines, total: Math.max(total, rows.length) });
    redraw();
  }
  function turn(next) {
    befores = next;
    void load().catch(() => {});
  }
  function choose({ target }) {
    list.filter = target.value;
    turn([undefined]);
  }
  const searchLater = throttled(200, () => turn([undefined]));
  function lookFor({ target }) {
    list.search = target.value.trim();
    searchLater();
  }
  return Object.assign(list, {
    reload: throttled(200, () => void load().catch(() => {})),
    /** A choice of what is listed: pairs of a value and its name. */
    filterField(label, all, pairs) {
      const options = [["", all], ...pairs].map(
        ([value, name]) => html`<option value=${value}>${name}</option>`,
      );
      return field(
        label,
        html`<select onchange=${choose}>
          ${options}
        </select>`,
      );
    },
    /** What is looked for in the list; `hint` says in what. */
    searchField(label, hint) {
      return field(
        label,
        html`<input type="search" placeholder=${hint} maxlength="200" oninput=${lookFor} ...${plainText} />`,
      );
    },
    /** Where one is, and the way to newer and older pages. */
    pager() {
      const { rows, total = 0 } = list;
      if (total === 0) return undefined;
      const isWhole = rows.length >= total;
      const range = `${first() + 1}–${first() + rows.length} of ${total.toLocaleString("en")}`;
      const older = () => turn([...befores, rows.at(-1)?.id]);
      const isLast = first() + rows.length >= total;
      return html`<div class="pager">
        <span class="place">${isWhole ? `${total.toLocaleString("en")} in all` : range}</span>
        ${!isWhole && button("Newer", () => turn(befores.slice(0, -1)), { isDisabled: first() === 0 })}
        ${!isWhole && button("Older", older, { isDisabled: isLast })}
      </div>`;
    },
    sameLines: () => list.lines && html`<div class="same">${openedLines(list.lines)}</div>`,
  });
}

export function problemOf(error) {
  return { problem: error instanceof Refusal ? error.message : "The service does not answer." };
}

/** A row of a list, which leads to its thing in full. `below` stands under the link; `key` is what the row keeps when `id` changes. */
export function linkedRow({ view, id, isMarked, key = id, below }, parts) {
  return html`<li key=${key}>
    <a href="#/${view}/${id}" aria-current=${isMarked ? "true" : undefined}>
      <span class="number">#${id}</span>
      ${parts}
    </a>
    ${below}
  </li>`;
}

/**
 * A view of a list with one of its things in full beside it, at the address `#/<name>/<id>`. `read(id)` asks for it, `parts(found)` shows it;
 * `one` is what it is called, `choose` is said while none is chosen, and `list(id)` is what stands beside it.
 */
export function splitView({ name, one, choose, read, parts, list, redraw }) {
  let id;
  let known;
  let shown;
  let section;
  // Where the list was when one of its things took its place, in a narrow window.
  let left = { top: 0, id: undefined };
  async function load() {
    const wanted = id;
    if (wanted === undefined) return;
    const found = await read(wanted).catch(problemOf);
    const text = JSON.stringify(found);
    if (wanted !== id || known === text) return;
    const isNew = known === undefined;
    known = text;
    // Kept as it is until it changes: what is the same is not looked at again.
    shown = html`<div class="parts" key=${wanted}>
      <a class="back" href="#/${name}">All ${name}</a>
      ${
        found.problem === undefined
          ? parts(found)
          : html`<h2>${one} #${wanted}</h2>
              <p class="empty">${found.problem}</p>`
      }
    </div>`;
    redraw();
    if (!isNew) return;
    section.focus({ preventScroll: true });
    section.scrollTo(0, 0);
    scrollTo(0, 0);
  }
  /** The list again, where it was left. */
  function goBack() {
    const link = document.querySelector(`.split.${name} a[href="#/${name}/${left.id}"]`);
    link?.focus({ preventScroll: true });
    scrollTo(0, left.top);
  }
  return {
    id: () => id,
    load,
    reload: throttled(200, () => void load()),
    open([wanted]) {
      if (wanted !== undefined && Number(wanted) === id) return;
      const isBack = wanted === undefined && id !== undefined;
      left = { top: id === undefined ? scrollY : left.top, id: id ?? left.id };
      id = wanted === undefined ? undefined : Number(wanted);
      known = undefined;
      if (id === undefined) shown = html`<p class="empty" key="none">${choose}</p>`;
      redraw();
      if (isBack) goBack();
      void load();
    },
    draw: () =>
      html`<div class="split ${name} ${id === undefined ? "" : "opened"}">
        ${list(id)}
        <section
          class="detail"
          aria-label="One ${one.toLowerCase()}"
          tabindex="-1"
          ref=${(element) => (section = element)}
        >
          ${shown}
        </section>
      </div>`,
  };
}
