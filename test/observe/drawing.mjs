// A dashboard as an HTML page: its panels where `gridPos` puts them, lines as SVG that fills its place, all text as HTML.

const palette = [
  "#3274d9",
  "#e0752d",
  "#299c46",
  "#c4162a",
  "#8f3bb8",
  "#d9a70c",
  "#1f9aa8",
  "#b04a7c",
  "#6d7a8c",
  "#7a4f1d",
  "#5f8f0a",
  "#4b4fc4",
  "#e377c2",
  "#17365d",
  "#00a078",
  "#ff6b5e",
];
const statColours = { green: "#2f8f46", red: "#c4162a", orange: "#d9731a" };

// In pixels: one of 24 columns, one unit of height, and what is left between panels.
const grid = { width: 66, height: 38, gap: 8 };

/** `asked`: panels with their series, as askPanels() gives them; `range` in Unix seconds. */
export function drawDashboard({ dashboard: { title, panels }, asked, range }) {
  const seriesOf = new Map(asked.map(({ panel, series }) => [panel, series]));
  const drawn = panels.map((panel) => drawPanel(panel, seriesOf.get(panel) ?? [], range));
  const bottom = Math.max(...panels.map(({ gridPos: { y, h } }) => y + h));
  return `<!doctype html><meta charset="utf-8"><title>${escape(title)}</title><style>${style}</style>
<main style="width:${24 * grid.width + grid.gap}px;height:${bottom * grid.height + grid.gap}px">${drawn.join("\n")}</main>`;
}

const style = `
body { margin: 0; background: #f4f5f5; font: 12px/1.35 "DejaVu Sans", sans-serif; color: #24292e }
main { position: relative }
.row { position: absolute; font-size: 15px; line-height: 30px }
.panel { position: absolute; display: flex; flex-direction: column; box-sizing: border-box; padding: 8px 12px;
  background: #fff; border: 1px solid #dfe1e5; border-radius: 3px }
h2 { margin: 0 0 6px; font-size: 13px; font-weight: 600 }
.number { flex: 1; display: grid; place-content: center; text-align: center; font-size: 48px; color: #fff; border-radius: 2px }
.number + .number { margin-top: 4px }
.number small { font-size: 13px }
.lines { flex: 1; min-height: 0; display: flex; gap: 0 24px }
.bottom { flex-direction: column }
.plot { position: relative; flex: 1; min-height: 0; margin: 6px 0 20px 66px }
svg { position: absolute; width: 100%; height: 100%; fill: none; stroke-width: 1.5 }
path { vector-effect: non-scaling-stroke }
.plot span { position: absolute; color: #5c646c; font-size: 11px; white-space: nowrap }
.y { right: 100%; padding-right: 8px; transform: translateY(50%) }
.x { top: 100%; padding-top: 4px; transform: translateX(-50%) }
.legend { display: flex; flex-wrap: wrap; gap: 0 12px; font-size: 11px }
i { display: inline-block; width: 12px; height: 3px; margin-right: 5px; vertical-align: middle }
table { font-size: 11px; line-height: 1.2; align-self: start; border-spacing: 0 }
th { font-weight: normal; text-align: left }
td { padding-left: 16px; text-align: right }`;

function drawPanel(panel, series, range) {
  const { x, y, w, h } = panel.gridPos;
  const place =
    `left:${x * grid.width + grid.gap}px;top:${y * grid.height + grid.gap}px;` +
    `width:${w * grid.width - grid.gap}px;height:${h * grid.height - grid.gap}px`;
  if (panel.type === "row") return `<div class="row" style="${place}">${escape(panel.title)}</div>`;
  const content = panel.type === "stat" ? drawStat(panel, series) : drawLines(panel, series, range);
  return `<section class="panel" style="${place}"><h2>${escape(panel.title)}</h2>${content}</section>`;
}

/** One tile for each series, by its name where the panel says so. */
function drawStat({ fieldConfig: { defaults }, options }, series) {
  const tiles = series.map(({ legend, points }) => {
    const [, value] = points.at(-1);
    const step = defaults.thresholds.steps.findLast((each) => each.value === null || value >= each.value);
    const name = options.textMode === "value_and_name" ? `<small>${escape(legend)}</small>` : "";
    return `<div class="number" style="background:${statColours[step.color]}">${name}${withUnit(value, defaults)}</div>`;
  });
  return tiles.join("");
}

function drawLines({ fieldConfig: { defaults }, options }, series, { start, end }) {
  const isLog = defaults.custom?.scaleDistribution.type === "log";
  const shown = series.map(({ points }) => points.filter(([, value]) => !isLog || value > 0));
  const values = shown.flatMap((points) => points.map(([, value]) => value));
  const ticks = isLog ? powersOfTen(values) : roundNumbers(values, defaults);
  const scaled = isLog ? Math.log10 : (value) => value;
  const [low, high] = [scaled(ticks[0]), scaled(ticks.at(-1))];
  const left = (time) => (time - start) / (end - start);
  const up = (value) => (scaled(value) - low) / (high - low);
  const at = ([time, value]) => `${left(time).toFixed(4)} ${(1 - up(value)).toFixed(4)}`;
  const lines = shown.map(
    (points, index) => `<path d="${lineThrough(points, at)}" stroke="${colourOf(index)}"/>`,
  );
  const rules = ticks.map((tick) => `<path d="M0 ${1 - up(tick)}H1" stroke="#e4e6e9"/>`);
  const heights = ticks.map(
    (tick) =>
      `<span class="y" style="bottom:${up(tick) * 100}%">${withUnit(tick, defaults, isLog ? tick : ticks.at(-1))}</span>`,
  );
  const times = roundTimes(start, end).map(
    (time) => `<span class="x" style="left:${left(time) * 100}%">${clockOf(time)}</span>`,
  );
  const plot = `<div class="plot"><svg viewBox="0 0 1 1" preserveAspectRatio="none">${rules.join("")}${lines.join("")}</svg>`;
  const { legend } = options;
  const drawnLegend = legend.displayMode === "table" ? drawTable(series, defaults, legend) : drawList(series);
  return `<div class="lines ${legend.placement}">${plot}${heights.join("")}${times.join("")}</div>${drawnLegend}</div>`;
}

// Where a value is missing the line has a gap.
function lineThrough(points, at) {
  const beginsAt = (index) => index === 0 || points[index][0] - points[index - 1][0] > 1.5;
  return points.map((point, index) => (beginsAt(index) ? `M${at(point)}` : `L${at(point)}`)).join("");
}

function drawList(series) {
  const names = series.map(({ legend }, index) => `<span>${markOf(index)}${escape(legend)}</span>`);
  return `<div class="legend">${names.join("")}</div>`;
}

const calculations = {
  lastNotNull: ["Last", (values) => values.at(-1)],
  max: ["Max", (values) => Math.max(...values)],
};

/** The calculations of a legend, in the order of its last one. */
function drawTable(series, defaults, { calcs }) {
  const chosen = calcs.map((name) => calculations[name]);
  const rows = series.map(({ legend, points }, index) => ({
    head: markOf(index) + escape(legend),
    numbers: chosen.map(([, calculate]) => calculate(points.map(([, value]) => value))),
  }));
  const sorted = rows.toSorted((one, other) => other.numbers.at(-1) - one.numbers.at(-1));
  const lines = sorted.map(({ head, numbers }) => {
    const cells = numbers.map((number) => `<td>${withUnit(number, defaults)}</td>`);
    return `<tr><th>${head}</th>${cells.join("")}</tr>`;
  });
  const heads = chosen.map(([name]) => `<td>${name}</td>`);
  return `<table><tr><th></th>${heads.join("")}</tr>${lines.join("")}</table>`;
}

const colourOf = (index) => palette[index % palette.length];
const clockOf = (time) => new Date(time * 1000).toISOString().slice(11, 19);
const markOf = (index) => `<i style="background:${colourOf(index)}"></i>`;

function roundTimes(start, end) {
  const every = 30;
  const first = Math.ceil(start / every) * every;
  const count = Math.floor((end - first) / every) + 1;
  return Array.from({ length: count }, (_, index) => first + index * every);
}

/** Three to six numbers, round in their unit, that hold zero and all values. */
function roundNumbers(values, { unit }) {
  const least = Math.min(0, ...values);
  const greatest = Math.max(0, ...values) || 1;
  const [size] = unit === "s" ? scaleOf(greatest) : [1];
  const rough = (greatest - least) / size / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough) * size;
  const first = Math.floor(least / step);
  const count = Math.ceil(greatest / step) - first + 1;
  return Array.from({ length: count }, (_, index) => (first + index) * step);
}

function powersOfTen(values) {
  const first = Math.floor(Math.log10(Math.min(...values)));
  const count = Math.ceil(Math.log10(Math.max(...values))) - first + 1;
  return Array.from({ length: count }, (_, index) => 10 ** (first + index));
}

const scales = [
  [86_400, "days"],
  [3_600, "hours"],
  [60, "min"],
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "µs"],
];

const scaleOf = (value) => scales.find(([least]) => Math.abs(value) >= least * 0.9999) ?? scales.at(-1);

/** A number by Grafana's name of its unit; a time in the scale of `greatest`, such as the highest one of its axis. */
function withUnit(value, { unit, decimals = 2 }, greatest = value) {
  const digits = (number) => String(Number(number.toFixed(decimals)));
  if (unit === "s") {
    const [size, name] = scaleOf(greatest);
    return `${digits(value / size)} ${name}`;
  }
  const suffix = { short: "", reqps: " req/s", ops: " ops/s" }[unit];
  if (suffix === undefined) throw new Error(`unit ${unit} is none that is drawn`);
  return digits(value) + suffix;
}

function escape(text) {
  return text.replaceAll(/[&<>"]/g, (character) => `&#${character.codePointAt(0)};`);
}
