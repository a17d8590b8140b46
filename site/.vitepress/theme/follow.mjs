// What a page gains from scripts: the list of pages follows it, ways become tabs, and a table gets a filter. Without them all is shown.

/** To be called whenever a page has come; what has been done is not done twice. */
export function followPage() {
  for (const group of document.querySelectorAll(".page-tabs:not([data-ready])")) makeTabs(group);
  for (const form of document.querySelectorAll(".row-filter:not([data-ready])")) makeFilter(form);
  reveal();
  // The groups of the list open in between.
  requestAnimationFrame(() => requestAnimationFrame(showPlaceInList));
}

function showPlaceInList() {
  const list = document.querySelector(".VPSidebar");
  for (const link of list?.querySelectorAll("a[aria-current]") ?? []) link.removeAttribute("aria-current");
  const link = list?.querySelector(".is-link.is-active > .item a");
  if (!link) return;
  link.setAttribute("aria-current", "page");
  const { top, bottom } = link.getBoundingClientRect();
  const frame = list.getBoundingClientRect();
  const bar = document.querySelector(".VPNavBar")?.getBoundingClientRect().bottom ?? 0;
  if (top >= Math.max(frame.top, bar) && bottom <= frame.bottom) return;
  list.scrollTop += top - frame.top - frame.height / 3;
}

function makeTabs(group) {
  const panels = [...group.children];
  const list = document.createElement("div");
  list.setAttribute("role", "tablist");
  const tabs = panels.map((panel) => {
    const heading = panel.querySelector("h2");
    const tab = document.createElement("button");
    tab.type = "button";
    tab.id = `tab-${heading.id}`;
    tab.textContent = heading.firstChild.textContent.trim();
    tab.setAttribute("role", "tab");
    panel.id = `panel-${heading.id}`;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", tab.id);
    tab.setAttribute("aria-controls", panel.id);
    tab.addEventListener("click", () => show(panel));
    return tab;
  });
  list.append(...tabs);
  list.addEventListener("keydown", ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (step === undefined) return;
    const next = (tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length;
    show(panels[next]);
    tabs[next].focus();
  });
  group.prepend(list);
  group.dataset.ready = "";
  show(panels[0]);
}

function show(panel) {
  for (const other of panel.parentElement.querySelectorAll(":scope > [role=tabpanel]")) {
    const tab = document.getElementById(other.getAttribute("aria-labelledby"));
    other.hidden = other !== panel;
    tab.setAttribute("aria-selected", String(other === panel));
    tab.tabIndex = other === panel ? 0 : -1;
  }
}

/** Shows the tab in which the place of an address is. */
export function reveal(hash = location.hash) {
  const place = hash && document.getElementById(decodeURIComponent(hash.slice(1)));
  const panel = place && place.closest("[role=tabpanel]");
  if (!panel?.hidden) return;
  show(panel);
  requestAnimationFrame(() => place.scrollIntoView());
}

/** Shows the rows of the table behind `form` that have the text, and the chosen value in the column of that name. */
function makeFilter(form) {
  const table = form.nextElementSibling;
  const rows = [...table.tBodies[0].rows];
  const columns = new Map([...table.tHead.rows[0].cells].map((cell, index) => [cell.textContent, index]));
  const valuesOf = (row, name) => row.cells[columns.get(name)].textContent.split(", ");
  const choices = [...form.querySelectorAll("select")];
  for (const choice of choices) {
    const values = new Set(rows.flatMap((row) => valuesOf(row, choice.name)));
    choice.append(
      ...[...values]
        .toSorted((one, other) => one.localeCompare(other))
        .map((value) => new Option(value, value)),
    );
  }
  const apply = () => {
    const text = form.elements.text.value.trim().toLowerCase();
    const shown = rows.filter((row) => {
      const chosen = choices.every(({ name, value }) => value === "" || valuesOf(row, name).includes(value));
      row.hidden = !chosen || !row.textContent.toLowerCase().includes(text);
      return !row.hidden;
    });
    form.querySelector("output").textContent = `${shown.length} of ${rows.length}`;
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.dataset.ready = "";
  apply();
}
