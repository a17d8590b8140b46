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
 * Every panel that shows data, with `series` as `{ legend, points }`, and `faults`: what is refused, empty, all zero, or has a legend
 * that does not tell one series from another.
 */
export function askPanels({ panels }, { prometheus, range, variables }) {
  const shown = panels.filter(({ type }) => type !== "row");
  return Promise.all(
    shown.map(async (panel) => {
      try {
        // What a stat shows is the last value alone.
        const times = panel.type === "stat" ? { end: range.end } : range;
        const answers = await Promise.all(
          panel.targets.map(async ({ expr, legendFormat }) => {
            const found = await prometheus.query(withVariables(expr, variables), times);
            return found.map(({ metric, values }) => seriesOf(metric, values, legendFormat));
          }),
        );
        const series = answers.flat();
        return { panel, series, faults: faultsOf(panel, series) };
      } catch (error) {
        return { panel, series: [], faults: [error.message] };
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

function faultsOf({ type, options }, series) {
  const withPoints = series.filter(({ points }) => points.length > 0);
  const legends = withPoints.map(({ legend }) => legend);
  return [
    ...(withPoints.length === 0 ? ["no data"] : []),
    ...(withPoints.every(({ points }) => points.every(([, value]) => value === 0)) ? ["only zeros"] : []),
    ...(type === "stat" && options.textMode !== "value_and_name" && series.length > 1
      ? [`${series.length} numbers without names`]
      : []),
    ...new Set(series.flatMap(({ missing }) => missing.map((label) => `no label ${label} for its legend`))),
    ...legends
      .filter((legend, index) => legends.indexOf(legend) !== index)
      .map((legend) => `two series ${legend}`),
  ];
}
