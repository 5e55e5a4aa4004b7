// A quick chart of rows: which column is x and which are y is chosen sensibly, and can be chosen otherwise.

import { axes, colour, Plot } from "../plot.js";
import uPlot from "../vendor/uplot.js";
import { Field, compact, html, isNumeric, useMemo, useState } from "../ui.js";

const isTime = (type) => /^(date|timestamp)/i.test(type);
const MOST = 5_000;

/** Whether there is something to draw: a column of numbers, and rows. */
export const chartable = (columns, rows) => rows.length > 1 && columns.some((column) => isNumeric(column.type));

/** x: a time, else a text, else the first column; y: the other numbers, keys last. */
export function guess(columns) {
  const x = columns.find((column) => isTime(column.type)) ?? columns.find((column) => !isNumeric(column.type)) ?? columns[0];
  const numbers = columns.filter((column) => isNumeric(column.type) && column !== x);
  const measures = numbers.filter((column) => !/(^|_)(id|key)$|^(pk|fk)_/i.test(column.name));
  return { x: x.name, y: (measures[0] ?? numbers[0] ?? columns.find((column) => isNumeric(column.type))).name };
}

export function Chart({ columns, rows }) {
  const first = useMemo(() => guess(columns), [columns]);
  const [x, setX] = useState(first.x);
  const [y, setY] = useState(first.y);
  const drawn = useMemo(() => data(columns, rows.slice(0, MOST), x, y), [columns, rows, x, y]);
  const numbers = columns.filter((column) => isNumeric(column.type));
  const pick = (value, set, list) => (id) => html`<select id=${id} value=${value} onChange=${(event) => set(event.target.value)}>${list.map((column) => html`<option key=${column.name} value=${column.name}>${column.name}</option>`)}</select>`;
  return html`<div class="chart">
    <div class="chart-choices"><${Field} label="x" inline>${pick(x, setX, columns)}<//><${Field} label="y" inline>${pick(y, setY, numbers)}<//>${rows.length > MOST && html`<span class="dim">the first ${compact(MOST)} rows</span>`}</div>
    <${Plot} key=${`${x} ${y}`} height=${280} label=${`${y} by ${x}`} data=${drawn.data} options=${() => options(drawn, y)} />
  </div>`;
}

/** Sorted by x. Texts stand beside one another, in the order of the rows. */
function data(columns, rows, x, y) {
  const type = columns.find((column) => column.name === x).type;
  const value = isTime(type) ? (row) => Date.parse(/^date$/i.test(type) ? `${row[x]}T00:00:00` : row[x]) / 1000 : isNumeric(type) ? (row) => Number(row[x]) : (row, place) => place;
  const kind = isTime(type) ? "time" : isNumeric(type) ? "number" : "text";
  const points = rows.map((row, place) => [value(row, place), row[y] === null ? null : Number(row[y]), row[x]]).filter(([at]) => Number.isFinite(at));
  if (kind !== "text") points.sort((a, b) => a[0] - b[0]);
  return { kind, texts: points.map((point) => (point[2] === null ? "NULL" : String(point[2]))), data: [points.map((point) => point[0]), points.map((point) => point[1])] };
}

function options({ kind, texts }, y) {
  const [across, up] = axes((value) => compact(value));
  const name = (value) => (Number.isInteger(value) ? (texts[value] ?? "") : "");
  const short = (text) => (text.length > 14 ? `${text.slice(0, 13)}…` : text);
  const line = colour("accent");
  const asBars = kind === "text";
  return {
    scales: { x: { time: kind === "time", ...(asBars ? { range: (plot, low, high) => [low - 0.6, high + 0.6] } : {}) }, y: { range: (plot, low, high) => [Math.min(0, low ?? 0), (high ?? 1) * 1.05 || 1] } },
    axes: [kind === "time" ? across : { ...across, values: (plot, splits) => splits.map((value) => (asBars ? short(name(value)) : compact(value))), ...(asBars ? { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] } : {}) }, up],
    series: [{}, { label: y, stroke: line, width: 1.5, fill: asBars ? line : undefined, points: { size: 5, show: !asBars && texts.length < 60, fill: line }, ...(asBars ? { paths: uPlot.paths.bars({ size: [0.7, 60] }) } : {}) }],
  };
}
