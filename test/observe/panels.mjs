// The panels of a Grafana dashboard, asked of a Prometheus as Grafana asks them.

/** Grafana's variables in an expression. Throws on one that is none of these. */
function withVariables(expr, variables) {
  return expr.replaceAll(/\$(?:\{(\w+)\}|(\w+))/g, (all, braced, bare) => {
    const value = variables[braced ?? bare];
    if (value === undefined) throw new Error(`${all} in ${expr} is no variable that is known here`);
    return value;
  });
}

/**
 * Every panel that shows data, with its `faults`: what is refused, empty, all zero, or has a legend that does not tell one series from
 * another.
 */
export function askPanels({ panels }, { prometheus, range, variables }) {
  const shown = panels.filter(({ type }) => type !== "row");
  return Promise.all(
    shown.map(async (panel) => {
      try {
        const answers = await Promise.all(
          panel.targets.map(async ({ expr, legendFormat, instant }) => {
            const times = instant ? { end: range.end } : range;
            const found = await prometheus.query(withVariables(expr, variables), times);
            return found.map(({ metric, values }) => seriesOf(metric, values, legendFormat));
          }),
        );
        const series = answers.flat();
        const withPoints = series.filter(({ points }) => points.length > 0);
        return { panel, faults: faultsOf(panel, withPoints) };
      } catch (error) {
        return { panel, faults: [error.message] };
      }
    }),
  );
}

function seriesOf(metric, values, legendFormat) {
  const missing = [];
  const legend = legendFormat.replaceAll(/\{\{\s*(\w+)\s*\}\}/g, (_all, label) => {
    if (metric[label] === undefined) missing.push(label);
    return metric[label] ?? "";
  });
  // NaN is how a quantile of nothing comes.
  const points = values.map(([time, text]) => [time, Number(text)]).filter(([, value]) => isFinite(value));
  return { legend, missing, points };
}

// More are not told apart by colour.
export const linesByDefault = 5;

function faultsOf({ type, targets, options }, series) {
  const legends = series.map(({ legend }) => legend);
  const isStat = type === "stat";
  return [
    ...(series.length === 0 ? ["no data"] : []),
    ...(!isStat && series.length > linesByDefault ? [`${series.length} lines`] : []),
    ...(series.every(({ points }) => points.every(([, value]) => value === 0)) ? ["only zeros"] : []),
    // Of a range Grafana shows the last value that there was, hours after it was gone.
    ...(isStat && targets.some(({ instant }) => !instant) ? ["a number of the past"] : []),
    ...(isStat && options.textMode !== "value_and_name" && series.length > 1
      ? ["numbers without names"]
      : []),
    ...new Set(series.flatMap(({ missing }) => missing.map((label) => `no label ${label} for its legend`))),
    ...legends
      .filter((legend, index) => legends.indexOf(legend) !== index)
      .map((legend) => `two series ${legend}`),
  ];
}
