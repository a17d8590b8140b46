// The tables of work: what waits, what is dead, what is done. To be read alone; the lines are for a shell.

import { curlLine, paths, workLine } from "./calls.js";
import {
  badge,
  button,
  code,
  facts,
  html,
  openedLines,
  shellLines,
  table,
  throttled,
  time,
  visible,
  When,
} from "./kit.js";
import { problemOf } from "./list.js";
import { get } from "./service.js";

const states = { open: "open", dead: "dead", done: "done" };
const enc = encodeURIComponent;
const addressOf = ({ store, queue }, state) => `#/work/${enc(store)}/${enc(queue)}/${state}`;

export function workView(overview, redraw) {
  // Of the address; without one, the first queue in which something is dead.
  let wanted;
  let shown;
  async function load() {
    if (!overview.hasWork) return;
    const asked = wanted;
    const { stores, problem } = await get(paths.work).catch(problemOf);
    const queues = (stores ?? []).flatMap(queuesOf);
    const chosen = asked ?? firstOf(queues);
    const found = chosen && (await get(paths.tasks(chosen)).catch(problemOf));
    // Another queue was asked for meanwhile.
    if (asked !== wanted) return;
    const problems =
      problem === undefined ? stores.filter((each) => each.problem !== undefined) : [{ problem }];
    shown = { queues, problems, chosen, found };
    redraw();
  }
  const reload = throttled(1000, () => void load());
  return {
    open([store, queue, state]) {
      const isKnown = queue !== undefined && Object.hasOwn(states, state);
      wanted = isKnown ? { store, queue, state } : undefined;
      void load();
    },
    refresh: reload,
    change(_told, isShown) {
      if (isShown) reload();
    },
    draw: () => html`<div class="column work">${partsOf(overview, shown, load)}</div>`,
  };
}

function queuesOf({ store, queues = [] }) {
  return queues.map((summary) => ({ ...summary, store }));
}

function firstOf(queues) {
  const chosen = queues.find(({ dead }) => dead > 0) ?? queues[0];
  return chosen && { store: chosen.store, queue: chosen.queue, state: chosen.dead > 0 ? "dead" : "open" };
}

function partsOf({ hasWork }, shown, load) {
  if (!hasWork)
    return html`<section class="card">
      <h2>Queues</h2>
      ${withoutWork}
    </section>`;
  if (shown === undefined) return undefined;
  const { queues, problems, chosen, found } = shown;
  const summary = queues.find(({ store, queue }) => store === chosen?.store && queue === chosen.queue);
  return html`<section class="card">
      <div class="bar">
        <h2>Queues</h2>
        ${button("Ask again", () => void load())}
      </div>
      ${problems.map(({ store, problem }) => html`<p class="problem">${visible(`${store ? `${store}: ` : ""}${problem}`)}</p>`)}
      ${queues.length > 0 ? table("Queues", columns, queues) : problems.length === 0 && html`<p class="hint">No queue has a task yet.</p>`}
    </section>
    ${chosen && tasksPart(chosen, summary, found)}`;
}

const withoutWork = html`<p class="hint">
  The inbox, the outcomes and other tasks are shown with the option work:${" "}
  ${code("inspector({ work: { main: stores.work } })")}
</p>`;

const columns = {
  Queue: (summary) =>
    html`<span
      ><a href=${addressOf(summary, summary.dead > 0 ? "dead" : "open")}>${visible(summary.queue)}</a>
      <small>${` ${visible(summary.store)}`}</small></span
    >`,
  Open: ({ open }) => open.toLocaleString("en"),
  Running: ({ running }) => running.toLocaleString("en"),
  Dead: ({ dead }) => (dead === 0 ? "0" : badge(dead.toLocaleString("en"), "bad")),
  Done: ({ done }) => done.toLocaleString("en"),
  "Oldest open": ({ oldestOpenMs }) =>
    oldestOpenMs === undefined ? "–" : html`<${When} ms=${Date.now() - oldestOpenMs} />`,
  Paused: ({ paused }) =>
    paused === undefined
      ? "no"
      : html`<span
          >${badge("paused", "doubt")}${` ${visible(`${paused.by}: ${paused.note}`)} `}${time(paused.atMs)}</span
        >`,
};

function tasksPart(chosen, summary, { tasks, isCut, problem }) {
  const { queue, state } = chosen;
  const next = summary?.paused === undefined ? "pause" : "resume";
  return html`<section class="card">
    <div class="bar">
      <h2>${visible(queue)}</h2>
      <nav class="states" aria-label="Tasks of ${queue}">
        ${Object.entries(states).map(
          ([name, word]) =>
            html`<a href=${addressOf(chosen, name)} aria-current=${name === state ? "true" : undefined}
              >${word}</a
            >`,
        )}
      </nav>
    </div>
    ${problem !== undefined && html`<p class="problem">${visible(problem)}</p>`}
    ${tasks?.length === 0 && html`<p class="hint">No task of ${visible(queue)} is ${states[state]}.</p>`}
    <ol class="tasks">
      ${tasks?.map((task) => taskPart(task))}
    </ol>
    ${
      isCut === true &&
      html`<p class="hint">
        These are the oldest. The others:${" "}${code(`${workLine("list", queue)} --state ${state}`)}
      </p>`
    }
    ${openedLines([
      [next === "pause" ? "Pause" : "Resume", workLine(next, queue)],
      ["Status", workLine("status", queue)],
      ["API call", curlLine(paths.tasks(chosen))],
    ])}
    <p class="hint">
      The commands take the address of the database from STORE_URL. Bodies are not shown here.
    </p>
  </section>`;
}

function taskPart({ queue, id, entity, state, attempts, failure, addedAtMs, dueAtMs, endedAtMs }) {
  const lines = state === "dead" ? ["retry", "discard", "show"] : ["show"];
  return html`<li key=${id}>
    <p class="who">${code(id)} ${stateBadge(state, dueAtMs)}</p>
    ${facts([
      ["Entity", code(entity)],
      ["Added", html`<${When} ms=${addedAtMs} />`],
      ["Due", dueAtMs === undefined ? undefined : time(dueAtMs)],
      ["Ended", endedAtMs === undefined ? undefined : time(endedAtMs)],
      ["Attempts", String(attempts)],
      [
        state === "dead" ? "Why" : "Last failure",
        failure && html`<span>${visible(failure.reason)}${" "}<small>${time(failure.atMs)}</small></span>`,
      ],
    ])}
    ${shellLines(lines.map((what) => [names[what], workLine(what, queue, id)]))}
  </li>`;
}

const names = { retry: "Retry", discard: "Discard", show: "Show" };

function stateBadge(state, dueAtMs) {
  if (state === "dead") return badge("dead", "bad");
  if (state === "done") return badge("done", "good");
  return dueAtMs <= Date.now() ? badge("due", "doubt") : badge("waits", "calm");
}
