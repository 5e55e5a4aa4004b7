// How old a view was, and what its refreshes did: which way, why, how long, with how many rows.

import { api } from "../api.js";
import { Badge, Busy, Failure, Moment, age, classes, count, duration, html, link, plural, useData, useMemo, useNow, useState } from "../ui.js";
import { Plot, axes, colour } from "../plot.js";

export const PHASES = ["planning", "reading", "computing", "writing", "committing"];
const TONES = { INCREMENTAL: "good", FULL: "odd", REINITIALIZE: "odd", NO_DATA: "", SKIP: "" };
const TIMES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 43_200, 86_400, 172_800, 604_800];
const saw = (record) => record.status === "SUCCEEDED" && record.action !== "SKIP";
const began = (record) => Date.parse(record.started_at) / 1000;

export function Refreshes({ view, turn, at }) {
  const [limit, setLimit] = useState(100);
  const history = useData((signal) => api.get("history", { view: view.name, limit }, { signal }), [view.name, turn, limit]);
  const [idle, setIdle] = useState(false);
  if (history.problem && !history.data) return html`<${Failure} problem=${history.problem} again=${history.reload} />`;
  if (!history.data) return html`<${Busy} label="Loading what its refreshes did" />`;
  const all = history.data.result;
  const shown = all.filter((record) => idle || record.action !== "NO_DATA");
  const hidden = all.filter((record) => record.action === "NO_DATA").length;
  return html`<div class="stack">
    <section class="card"><header><h2>Lag${view.target_lag_seconds === null ? "" : " against its target"}</h2><span class="dim">${plural(all.length, "refresh", "refreshes")}${all.length ? html`, since <${Moment} at=${all.at(-1).started_at} />` : ""}</span></header>
      <div class="inside"><${LagPlot} view=${view} history=${all} at=${at} /></div></section>
    <section class="card"><header><h2>Refreshes</h2><${Phases} />
        <span class="ends"><label class="check"><input type="checkbox" checked=${idle} onChange=${(event) => setIdle(event.target.checked)} /> with those that found nothing (${hidden})</label></span></header>
      ${shown.length ? html`<${Bars} records=${shown} />` : html`<p class="nothing">No refresh has changed it yet.</p>`}
      ${all.length === limit && html`<p class="inside"><button type="button" class="textual" onClick=${() => setLimit(limit * 5)}>Show older ones</button></p>`}
    </section>
  </div>`;
}

const Phases = () => html`<span class="phase-key" aria-hidden="true">${PHASES.map((phase) => html`<span key=${phase}><i class=${`phase ${phase}`} />${phase}</span>`)}</span>`;

// -- lag over time ----------------------------------------------------------------------------------------------------

/**
 * The lag grows until a refresh is through that has seen the sources; then it is as old as that refresh is long. A record
 * that stands for many is drawn as the highest lag among them.
 */
export function lags(history, now) {
  const [times, values] = [[], []];
  const put = (time, lag) => {
    times.push(Math.max(time, times.at(-1) ?? time));
    values.push(Math.max(0, lag));
  };
  let seen = null;
  for (const record of [...history].reverse().filter(saw)) {
    const [start, seconds] = [began(record), record.seconds];
    if (record.times > 1 && record.since) {
      const first = Date.parse(record.since) / 1000;
      if (seen !== null) put(first, first - seen);
      put(first, record.longest ?? seconds);
      put(start + seconds, record.longest ?? seconds);
    } else if (seen !== null) put(start + seconds, start + seconds - seen);
    put(start + seconds, seconds);
    seen = start;
  }
  if (seen !== null) put(now, now - seen);
  return [times, values];
}

function LagPlot({ view, history, at }) {
  const failures = useMemo(() => history.filter((record) => record.status === "FAILED").map(began), [history]);
  const data = useMemo(() => {
    const [times, values] = lags(history, at / 1000);
    return [times, values, times.map(() => view.target_lag_seconds)];
  }, [history, at, view.target_lag_seconds]);
  if (view.refresh === "IMMEDIATE") return html`<p class="dim">It moves in the statements that write its tables, so it has no lag.</p>`;
  if (data[0].length < 2) return html`<p class="dim">Not refreshed often enough to be drawn.</p>`;
  const [most, target] = [Math.max(...data[1]), view.target_lag_seconds];
  const options = () => {
    const [accent, bad] = [colour("accent"), colour("bad")];
    return {
      // a target far above all lags would flatten them: then it is left out of the scale
      scales: { y: { range: (plot, low, high) => [0, Math.max(1, (target !== null && target < most * 20 ? Math.max(most, target) : most) * 1.1)] } },
      axes: axes(age, { incrs: TIMES }),
      series: [{}, { stroke: accent, width: 1.5, fill: transparent(accent), points: { show: false } }, { stroke: bad, width: 1.2, dash: [5, 4], points: { show: false } }],
      hooks: { draw: [(plot) => marks(plot, failures, bad)] },
    };
  };
  const over = target === null ? "" : most > target ? ` It was over its target of ${age(target)}.` : ` It stayed within its target of ${age(target)}.`;
  return html`<${Plot} data=${data} options=${options} label=${`Lag over time: ${age(most)} at most, over ${plural(history.length, "refresh", "refreshes")}.${over}`} />
    <p class="hint">${target === null ? "No target lag." : html`<span class="dash" aria-hidden="true" /> target ${age(target)}${target >= most * 20 ? ", far above what is drawn" : ""}.`}${failures.length ? ` Lines: ${plural(failures.length, "refresh", "refreshes")} that failed.` : ""} At most ${age(most)}. Drag over a time to see it closer; twice, to see all.</p>`;
}

const transparent = (rgb) => rgb.replace(/^rgb\(/, "rgba(").replace(/\)$/, ", 0.14)");

/** A line where a refresh failed. */
function marks(plot, times, stroke) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = stroke;
  ctx.lineWidth = devicePixelRatio;
  for (const time of times) {
    const x = Math.round(plot.valToPos(time, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

// -- refreshes as bars ------------------------------------------------------------------------------------------------

function Bars({ records }) {
  const longest = Math.max(...records.map((record) => record.seconds), 0.001);
  return html`<div class="table-wrap" tabindex="0" role="region" aria-label="Refreshes"><table class="table bars"><caption class="hidden">Refreshes, newest first</caption>
    <thead><tr><th scope="col">Epoch</th><th scope="col">When</th><th scope="col">Action</th><th scope="col" class="hide-phone">Strategy</th><th scope="col" class="fill">Seconds by phase</th><th scope="col" class="end">Rows in</th><th scope="col" class="end">Rows out</th></tr></thead>
    <tbody>${records.map(
      (record) => html`<tr key=${`${record.epoch} ${record.started_at}`}>
        <td><a href=${link("epochs", record.epoch)}>${record.epoch}</a></td>
        <td><${Moment} at=${record.started_at} />${record.times > 1 && html` <span class="dim">×${count(record.times)}</span>`}</td>
        <td><${Badge} tone=${record.status === "FAILED" ? "bad" : TONES[record.action]}>${record.status === "SUCCEEDED" ? record.action : record.status}<//> <span class="dim">${record.reason}</span></td>
        <td class="hide-phone">${record.strategy ?? html`<span class="dim">–</span>`}</td>
        <td class="fill"><${Bar} record=${record} longest=${longest} /></td>
        <td class=${classes("end", record.rows_inserted && "plus")}>${record.rows_inserted ? `+${count(record.rows_inserted)}` : "0"}</td>
        <td class=${classes("end", record.rows_deleted && "minus")}>${record.rows_deleted ? `−${count(record.rows_deleted)}` : "0"}</td>
      </tr>
      ${record.error && html`<tr class="error-row"><td /><td colspan="6" class="wide error-text">${record.error}</td></tr>`}`,
    )}</tbody></table></div>`;
}

function Bar({ record, longest }) {
  const phases = record.details?.phases ?? {};
  const parts = PHASES.map((phase) => [phase, phases[phase] ?? 0]).filter(([, seconds]) => seconds > 0);
  const said = parts.map(([phase, seconds]) => `${phase} ${duration(seconds)}`).join(", ");
  const total = parts.reduce((sum, [, seconds]) => sum + seconds, 0);
  const rest = Math.max(0, record.seconds - total);
  return html`<span class="bar-line" title=${said}><span class="bar" style=${{ width: `${Math.max(0.5, (72 * record.seconds) / longest)}%` }}>
    ${parts.map(([phase, seconds]) => html`<i key=${phase} class=${`phase ${phase}`} style=${{ flexGrow: (1000 * seconds) / record.seconds }} />`)}${(rest > 0.02 * record.seconds || !parts.length) && html`<i class="phase" style=${{ flexGrow: (1000 * rest) / record.seconds || 1 }} />`}</span>
    <span class="number">${duration(record.seconds)}</span><span class="hidden">${said}</span></span>`;
}
