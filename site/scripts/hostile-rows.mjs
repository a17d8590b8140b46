// Prints the rows of hostile requests in test/adapters, by group and by answer: what the page of hostile requests shows.
import { register } from "node:module";

register("./typescript-hook.mjs", import.meta.url);
const adapters = (name) => import(`../../test/adapters/${name}.ts`);
const { componentRows } = await adapters("hostile-component-rows");
const { severalRows } = await adapters("hostile-several-rows");
const { targetRows } = await adapters("hostile-target-rows");
const { bodyRows } = await adapters("hostile-body-rows");
const { hostileRows } = await adapters("hostile-rows");
const { payoutRows } = await adapters("payout-rows");
const { socketRows } = await adapters("hostile-socket-rows");
const { refusedRows } = await adapters("hostile-http2-rows");

const grouped = new Set([...componentRows, ...severalRows, ...targetRows, ...bodyRows]);
const groups = {
  "A payout": payoutRows.map(ofAdapter),
  "Components and the base": componentRows.map(ofAdapter),
  "Several signatures": severalRows.map(ofAdapter),
  "Targets, servers and schemes": targetRows.map(ofAdapter),
  "Bodies and digests": bodyRows.map(ofAdapter),
  "Policies, times and stores": hostileRows.filter((row) => !grouped.has(row)).map(ofAdapter),
  "Bytes on a connection": socketRows.map(ofSocket),
  "HTTP/2": refusedRows.map(([title, code]) => [title, `401 \`${code}\``]),
};

function ofAdapter({ title, answer, code }) {
  const refusal = code ?? (answer.status === 200 ? undefined : JSON.parse(answer.body).code);
  return [title, refusal === undefined ? String(answer.status) : `${answer.status} \`${refusal}\``];
}

/** Versions of Node differ in what their parser refuses: what each may answer, in its order. */
function ofSocket({ title, outcomes }) {
  const texts = outcomes.map(({ statuses, codes }) => {
    const all = statuses.length === 0 ? "closed" : statuses.join(" and ");
    return [all, ...codes.map((code) => `\`${code}\``)].join(" ");
  });
  return [title, texts.join(", or ")];
}

const escaped = (title) => title.replaceAll(/[\\`*_[\]|#]/g, "\\$&").replaceAll("<", "&lt;");

for (const [group, rows] of Object.entries(groups)) {
  const byAnswer = new Map();
  for (const [title, answer] of rows) byAnswer.set(answer, [...(byAnswer.get(answer) ?? []), escaped(title)]);
  const lines = [...byAnswer].map(([answer, titles]) => `- ${answer}: ${titles.join(" · ")}`);
  console.log(`## ${group}\n\n${lines.join("\n")}\n`);
}
// Stores of the scenes have timers.
process.exit();
