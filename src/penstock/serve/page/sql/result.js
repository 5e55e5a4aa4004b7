// What a statement gave: rows page by page, as a chart, as a file; or what was done.

import { Badge, Button, Choice, Empty, Field, Icon, cell, classes, count, duration, html, isNumeric, link, plural, useMemo, useState } from "../ui.js";
import { Chart, chartable } from "./chart.js";

const PAGE = 100;

/** `outcome`: {text, answer, seconds} as the console keeps it. */
export function Result({ outcome }) {
  const { answer } = outcome;
  if (isDone(answer)) return html`<${Done} told=${answer.result[0]} />`;
  if (isText(answer)) return html`<pre class="sql" tabindex="0" role="region" aria-label="Explanation">${answer.result.map((row) => Object.values(row)[0]).join("\n")}</pre>`;
  return html`<${Rows} answer=${answer} />`;
}

const names = (answer) => answer.columns.map((column) => column.name).join();
const isDone = (answer) => names(answer) === "message,rows,views";
/** EXPLAIN and SHOW CREATE give lines of one column, which stay together. */
const isText = (answer) => ["explanation", "plan", "statement"].includes(names(answer));

function Done({ told }) {
  return html`<div class="result-done"><p><${Icon} name="check" /> ${told.message}</p>
    ${told.views?.length > 0 && html`<ul>${told.views.map((view) => html`<li key=${view.name}><a href=${link("view", view.name)}>${view.name}</a> <${Badge}>${view.status === "FAILED" ? "FAILED" : view.action}<//>
      <span class="dim">+${count(view.rows_inserted)} −${count(view.rows_deleted)} rows, ${duration(view.seconds)}</span>${view.error && html` ${view.error}`}</li>`)}</ul>`}</div>`;
}

function Rows({ answer }) {
  const [at, setAt] = useState(0);
  const [shown, setShown] = useState("table");
  const { columns, result } = answer;
  const pages = Math.max(1, Math.ceil(result.length / PAGE));
  const page = result.slice(at * PAGE, (at + 1) * PAGE);
  const can = useMemo(() => chartable(columns, result), [answer]);
  return html`<div class="result">
    <div class="result-bar">
      <span>${plural(result.length, "row")}${answer.truncated ? html` <${Badge} tone="near" title=${`There are more. The limit was ${count(answer.limit)}.`}>there are more<//>` : ""}</span>
      <span class="result-ends">
        ${can && html`<${Choice} label="Show the rows as" options=${[{ value: "table", title: "Table", icon: "table" }, { value: "chart", title: "Chart", icon: "graph" }]} value=${shown} onChange=${setShown} />`}
        ${shown === "table" && pages > 1 && html`<span class="pager"><${Button} kind="quiet" label="Page before" disabled=${at === 0} onClick=${() => setAt(at - 1)}>‹<//><span class="number">${count(at * PAGE + 1)}–${count(Math.min(result.length, (at + 1) * PAGE))}</span><${Button} kind="quiet" label="Page after" disabled=${at >= pages - 1} onClick=${() => setAt(at + 1)}>›<//></span>`}
        <${Button} kind="quiet" icon="down" disabled=${!result.length} onClick=${() => save(columns, result)}>CSV<//>
      </span>
    </div>
    ${shown === "chart" && can ? html`<${Chart} columns=${columns} rows=${result} />` : html`<${Grid} columns=${columns} rows=${page} first=${at * PAGE} />`}
  </div>`;
}

/** Rows as they are: NULL is told from a text, numbers stand to the right, documents open. */
function Grid({ columns, rows, first }) {
  if (!rows.length) return html`<p class="nothing">No rows. Its columns are ${columns.map((column) => column.name).join(", ")}.</p>`;
  return html`<div class="table-wrap result-grid" tabindex="0" role="region" aria-label="Rows"><table class="table">
    <thead><tr><th class="end" scope="col"><span class="hidden">Row</span></th>${columns.map((column, place) => html`<th key=${place} scope="col" class=${isNumeric(column.type) ? "end" : undefined} title=${column.type}>${column.name} <span class="type">${column.type}</span></th>`)}</tr></thead>
    <tbody>${rows.map((row, place) => html`<tr key=${place}><td class="end dim number">${first + place + 1}</td>${columns.map((column, at) => html`<${Cell} key=${at} value=${row[column.name]} type=${column.type} />`)}</tr>`)}</tbody>
  </table></div>`;
}

const LONG = 160;

function Cell({ value, type }) {
  const [open, setOpen] = useState(false);
  if (value === null || value === undefined) return html`<td class="null">NULL</td>`;
  const text = cell(value);
  if (text === "") return html`<td class="null" title="A text without characters">empty</td>`;
  if (text.length <= LONG) return html`<td class=${classes(isNumeric(type) && "end number", typeof value === "object" && "mono")}>${text}</td>`;
  const whole = typeof value === "object" ? JSON.stringify(value, null, 2) : text;
  return html`<td class="wide">${open ? html`<span class="whole">${whole}</span>` : `${text.slice(0, LONG)}…`} <button type="button" class="textual" aria-expanded=${open ? "true" : "false"} onClick=${() => setOpen(!open)}>${open ? "less" : "all of it"}</button></td>`;
}

/** Rows as a file: NULL is nothing, a text without characters two quotes, as the server writes it. */
export function csv(columns, rows) {
  const written = (value) => {
    if (value === null || value === undefined) return "";
    const text = cell(value);
    return text === "" || /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const line = (values) => `${values.map(written).join(",")}\r\n`;
  return line(columns.map((column) => column.name)) + rows.map((row) => line(columns.map((column) => row[column.name]))).join("");
}

function save(columns, rows) {
  const url = URL.createObjectURL(new Blob([csv(columns, rows)], { type: "text/csv" }));
  const anchor = Object.assign(document.createElement("a"), { href: url, download: "rows.csv" });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
