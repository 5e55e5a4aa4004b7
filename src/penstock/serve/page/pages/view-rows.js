// The rows of a view, page by page, and the rows that came and went between two epochs.

import { api } from "../api.js";
import { Badge, Busy, Button, Failure, Field, cell, classes, count, html, isNumeric, plural, setParams, useData, useState } from "../ui.js";

const PAGE = 50;
const MOST = 2_000;

/** A grid of rows as they are; `sign(row)` marks them. */
function Grid({ rows, types, label, sign }) {
  const names = Object.keys(rows[0]).filter((name) => name !== "__weight");
  return html`<div class="table-wrap rows" tabindex="0" role="region" aria-label=${label}><table class="table">
    <thead><tr>${sign && html`<th scope="col"><span class="hidden">Came or went</span></th>`}${names.map((name) => html`<th key=${name} scope="col" class=${isNumeric(types.get(name)) ? "end" : undefined}>${name}</th>`)}</tr></thead>
    <tbody>${rows.map(
      (row, place) => html`<tr key=${place} class=${sign && (row.__weight > 0 ? "came" : "went")}>
        ${sign && html`<td class="sign">${row.__weight > 0 ? "+" : "−"}${Math.abs(row.__weight) > 1 ? Math.abs(row.__weight) : ""}<span class="hidden">${row.__weight > 0 ? " came" : " went"}</span></td>`}
        ${names.map((name) => html`<td key=${name} class=${classes(isNumeric(types.get(name)) && "end", row[name] === null && "null", "clip")} title=${cell(row[name]).length > 40 ? cell(row[name]) : undefined}>${cell(row[name])}</td>`)}
      </tr>`,
    )}</tbody></table></div>`;
}

const typesOf = (view) => new Map(view.columns.map((column) => [column.name, column.type]));

export function Rows({ path, view, turn }) {
  const [epoch, setEpoch] = useState("");
  const [typed, setTyped] = useState("");
  const [pages, setPages] = useState([]); // the `after` of each page that was left behind
  const after = pages.at(-1);
  // the first page is of the newest epoch and goes along with it; a later one stays at its own
  const found = useData((signal) => api.get(`${path}/rows`, { limit: PAGE, epoch: after ? undefined : epoch, after }, { signal }), [path, epoch, after, after || epoch ? 0 : turn]);
  const jump = (event) => {
    event.preventDefault();
    setPages([]);
    setEpoch(typed.trim());
  };
  const data = found.data;
  const begin = pages.length * PAGE;
  return html`<section class="card"><header><h2>Rows</h2>
      ${data && html`<span class="dim">of epoch ${data.epoch}${epoch || after ? "" : ", the newest"}</span>`}
      <form class="ends" onSubmit=${jump}><${Field} label="As of epoch" inline>${(id) => html`<input id=${id} type="text" inputmode="numeric" pattern="\\d*" placeholder="newest" size="7" value=${typed} onInput=${(event) => setTyped(event.target.value)} />`}<//><${Button} type="submit">Show<//></form></header>
    ${found.problem ? html`<div class="inside"><${Failure} problem=${found.problem} again=${found.reload} /></div>` : !data ? html`<${Busy} label="Loading rows" />` : !data.result.length ? html`<p class="nothing">It has no rows${begin ? " behind these" : ""}.</p>` : html`<${Grid} rows=${data.result} types=${typesOf(view)} label="Rows" />`}
    ${data && html`<footer class="pager"><${Button} icon="left" disabled=${!pages.length} onClick=${() => setPages(pages.slice(0, -1))}>Back<//>
      <span class="number" role="status">${data.returned ? `${count(begin + 1)} – ${count(begin + data.returned)}` : "none"}</span>
      <${Button} disabled=${!data.next} onClick=${() => setPages([...pages, data.next])}>Next<//></footer>`}
  </section>`;
}

export function Differences({ path, view, turn, params }) {
  const history = useData((signal) => api.get("history", { view: view.name, limit: 500 }, { signal }), [view.name, turn]);
  if (history.problem && !history.data) return html`<${Failure} problem=${history.problem} again=${history.reload} />`;
  if (!history.data) return html`<${Busy} />`;
  const moved = history.data.result.filter((record) => record.status === "SUCCEEDED" && !["NO_DATA", "SKIP"].includes(record.action));
  const epochs = [...new Set(moved.map((record) => record.epoch))];
  if (epochs.length < 2) return html`<section class="card"><p class="nothing">It has changed ${epochs.length ? "once" : "never"}, so there are no two states to compare.</p></section>`;
  const has = (value) => epochs.includes(Number(value));
  const until = has(params.until) ? Number(params.until) : epochs[0];
  const since = has(params.since) && Number(params.since) < until ? Number(params.since) : (epochs.find((epoch) => epoch < until) ?? epochs.at(-1));
  return html`<${Difference} path=${path} view=${view} epochs=${epochs} records=${moved} since=${since} until=${until} />`;
}

function Difference({ path, view, epochs, records, since, until }) {
  const found = useData((signal) => api.get(`${path}/changes`, { since, until, limit: MOST }, { signal }), [path, since, until]);
  const named = (epoch) => `${epoch}: ${records.find((record) => record.epoch === epoch).action}`;
  const choose = (label, value, among, set) =>
    html`<${Field} label=${label} inline>${(id) => html`<select id=${id} value=${value} onChange=${(event) => set(event.target.value)}>${among.map((epoch) => html`<option key=${epoch} value=${epoch}>${named(epoch)}</option>`)}</select>`}<//>`;
  const rows = found.data?.result ?? [];
  const [came, went] = [rows.filter((row) => row.__weight > 0), rows.filter((row) => row.__weight < 0)];
  const first = Object.keys(rows[0] ?? {})[0];
  const sorted = [...rows].sort((a, b) => String(a[first]).localeCompare(String(b[first]), "en", { numeric: true }) || a.__weight - b.__weight);
  return html`<section class="card"><header><h2>From one epoch to another</h2>
      <span class="ends wrap">${choose("From epoch", since, epochs.filter((epoch) => epoch < until), (value) => setParams({ since: value }))}${choose("to epoch", until, epochs.slice(0, -1), (value) => setParams({ until: value, since: "" }))}</span></header>
    ${found.problem ? html`<div class="inside"><${Failure} problem=${found.problem} again=${found.reload} /></div>` : !found.data ? html`<${Busy} label="Comparing" />` : html`<p class="inside summary" role="status"><${Badge} tone="good">+ ${plural(came.length, "row")} came<//> <${Badge} tone="bad">− ${plural(went.length, "row")} went<//>${found.data.truncated ? ` Only the first ${count(MOST)} are shown.` : ""}</p>
      ${rows.length ? html`<${Grid} rows=${sorted} types=${typesOf(view)} label="Rows that came and went" sign />` : html`<p class="nothing">No row differs.</p>`}`}
  </section>`;
}
