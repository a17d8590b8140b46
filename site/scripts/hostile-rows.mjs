// Prints the rows of hostile requests in test/doors, by group and by answer: what the page of hostile requests shows.
import { register } from "node:module";

register("./typescript-hook.mjs", import.meta.url);
const doors = (name) => import(`../../test/doors/${name}.ts`);
const { componentRows } = await doors("hostile-component-rows");
const { severalRows } = await doors("hostile-several-rows");
const { targetRows } = await doors("hostile-target-rows");
const { bodyRows } = await doors("hostile-body-rows");
const { hostileRows } = await doors("hostile-rows");
const { payoutRows } = await doors("payout-rows");
const { socketRows } = await doors("hostile-socket-rows");
const { refusedRows } = await doors("hostile-http2-rows");

const grouped = new Set([...componentRows, ...severalRows, ...targetRows, ...bodyRows]);
const groups = {
  "A payout": payoutRows.map(ofDoor),
  "Components and the base": componentRows.map(ofDoor),
  "Several signatures": severalRows.map(ofDoor),
  "Targets, servers and schemes": targetRows.map(ofDoor),
  "Bodies and digests": bodyRows.map(ofDoor),
  "Policies, times and stores": hostileRows.filter((row) => !grouped.has(row)).map(ofDoor),
  "Bytes on a connection": socketRows.map(ofSocket),
  "HTTP/2": refusedRows.map(([title, code]) => [title, `401 \`${code}\``]),
};

function ofDoor({ title, answer, code }) {
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
