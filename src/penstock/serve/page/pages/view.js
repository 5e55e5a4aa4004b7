// One view: what it is, how it is maintained, how fresh it was, its rows, and what can be done with it.

import { api } from "../api.js";
import { Ago, Badge, Busy, Copy, Empty, Failure, Icon, Lag, Table, Tabs, count, duration, html, lagTone, link, plural, setParams, useData, useEvents, useGathered, useState } from "../ui.js";
import { highlighted, laidOut } from "../highlight.js";
import { ViewActions } from "./view-actions.js";
import { Refreshes } from "./view-history.js";
import { Differences, Rows } from "./view-rows.js";

export const title = "View";
export const styles = ["vendor/uplot.css", "pages/view.css"];

export default function ViewPage({ parts, params, role }) {
  const name = parts[0];
  if (!name) return html`<${Empty} title="Which view?"><p><a href=${link("graph")}>Choose one in the graph</a></p><//>`;
  return html`<${View} key=${name} name=${name} params=${params} role=${role} />`;
}

const TABS = [
  { key: "definition", title: "Definition" },
  { key: "refreshes", title: "Refreshes" },
  { key: "rows", title: "Rows" },
  { key: "changes", title: "Changes" },
];

function View({ name, params, role }) {
  const path = `views/${encodeURIComponent(name)}`;
  const view = useData((signal) => api.get(path, {}, { signal }), [name]);
  const lineage = useData((signal) => api.get(`${path}/lineage`, {}, { signal }), [name]);
  const [working, setWorking] = useState(false);
  const [turn, setTurn] = useState(0);
  const again = useGathered(() => {
    view.reload();
    setTurn((value) => value + 1);
  }, 400);
  const mine = (other) => other?.toLowerCase() === name.toLowerCase();
  useEvents(({ kind, data }) => {
    if (kind === "refresh" && mine(data.view)) setWorking(true);
    if (kind === "node" && mine(data.node)) {
      setWorking(false);
      again();
    }
    if (kind === "gap" || (kind === "epoch" && (data.restored !== null || data.views.some((one) => mine(one.view)))) || (["failure", "alert"].includes(kind) && mine(data.view))) {
      setWorking(false);
      again();
    }
  });
  if (view.problem && !view.data) {
    return html`<div class="page"><${Failure} problem=${view.problem} again=${view.reload} /><p><a href=${link("graph")}>To the graph</a></p></div>`;
  }
  if (!view.data) return html`<${Busy} label=${`Loading ${name}`} />`;
  const told = { ...view.data, readers: (lineage.data?.result ?? []).filter((one) => one.direction !== "reads" && one.direct).map((one) => one.other) };
  const tab = TABS.some((one) => one.key === params.tab) ? params.tab : "definition";
  return html`<div class="page">
    <div class="page-head">
      <h1>${told.name}</h1>
      <${Standing} view=${told} working=${working} />
      <div class="ends"><${ViewActions} view=${told} role=${role} after=${again} /></div>
    </div>
    ${told.comment && html`<p class="view-comment">${told.comment}</p>`}
    ${told.last_status === "FAILED" && html`<${Failure} problem=${{ detail: `The last refresh failed: ${told.last_error}`, help: "The rows are those of the refresh before. Mend what it says, and refresh again." }} />`}
    <${Facts} view=${told} at=${view.at} />
    <${Tabs} tabs=${TABS} value=${tab} onChange=${(key) => setParams({ tab: key === "definition" ? "" : key })} label="What of the view">
      ${tab === "definition"
        ? html`<${Definition} view=${told} lineage=${lineage} path=${path} />`
        : tab === "refreshes"
          ? html`<${Refreshes} view=${told} turn=${turn} at=${view.at} />`
          : tab === "rows"
            ? html`<${Rows} path=${path} view=${told} turn=${turn} />`
            : html`<${Differences} path=${path} view=${told} turn=${turn} params=${params} />`}
    <//>
  </div>`;
}

function Standing({ view, working }) {
  const failed = view.last_status === "FAILED" || view.state === "ERROR";
  return html`<span class="standing">
    <${Badge} tone=${failed ? "bad" : view.state === "ACTIVE" ? "good" : ""}>${failed && view.state === "ACTIVE" ? "FAILED" : view.state}<//>
    ${view.stale && html`<${Badge} tone="near" title="There is something new that it has not seen">STALE<//>`}
    ${view.refresh === "IMMEDIATE" && html`<${Badge} tone="calm" icon="bolt">IMMEDIATE<//>`}
    ${!view.incremental && html`<${Badge} tone="odd" icon="refresh">RECOMPUTED<//>`}
    ${view.held_back_by.length > 0 && html`<${Badge} tone="bad">HELD BACK by ${view.held_back_by.join(", ")}<//>`}
    <span role="status">${(working || view.building) && html`<${Badge} tone="calm"><span class="spin" aria-hidden="true" /> being refreshed<//>`}</span>
  </span>`;
}

function Facts({ view, at }) {
  const behind = Object.entries(view.behind);
  const immediate = view.refresh === "IMMEDIATE" && !view.stale;
  const tone = lagTone(immediate ? 0 : view.lag_seconds, view.target_lag_seconds);
  return html`<dl class="strip">
    <div class=${`strip-lag ${tone}`}><dt>Lag</dt><dd><${Lag} seconds=${immediate ? 0 : view.lag_seconds} target=${view.target_lag_seconds} at=${at} still=${immediate} />
      <small>${view.target_lag_seconds === null ? "no target" : view.lag_from === view.name ? "own target" : `target of ${view.lag_from ?? "min_target_lag"}`}</small></dd></div>
    <div><dt>Refresh</dt><dd>${view.refresh}<small>${!view.refreshes_itself ? "when asked" : view.refresh === "MANUAL" ? "by its target lag" : "by itself"}</small></dd></div>
    <div><dt>Policy</dt><dd>${view.policy}<small>${view.incremental ? "incremental" : "recomputed"}</small></dd></div>
    <div><dt>Last refresh</dt><dd><${Ago} at=${view.last_refresh} /><small>${view.last_refresh ? `${view.last_action}, ${duration(view.last_seconds)}` : ""}</small></dd></div>
    <div><dt>Behind</dt><dd>${behind.length ? plural(behind.reduce((sum, [, commits]) => sum + (commits ?? 0), 0), "commit") : "nothing"}<small>${behind.map(([name]) => name).join(", ") || "has seen all"}</small></dd></div>
  </dl>`;
}

// -- definition -------------------------------------------------------------------------------------------------------

function Definition({ view, lineage, path }) {
  const explained = useData((signal) => api.get(`${path}/explain`, {}, { signal }), [path, view.query, view.policy]);
  const text = laidOut(view.query);
  return html`<div class="view-grid">
    <div class="stack">
      <section class="card"><header><h2>Query</h2><span class="ends"><${Copy} text=${view.query} label="Copy the query" /></span></header>
        <pre class="sql" tabindex="0" aria-label="Query">${highlighted(text)}</pre></section>
      <${Maintained} explained=${explained} />
    </div>
    <div class="stack">
      <${Columns} view=${view} lineage=${lineage.data} />
      <${Neighbours} view=${view} lineage=${lineage} />
    </div>
  </div>`;
}

function Maintained({ explained }) {
  const head = html`<header><h2>How it is maintained</h2></header>`;
  if (explained.problem) return html`<section class="card">${head}<div class="inside"><${Failure} problem=${explained.problem} again=${explained.reload} /></div></section>`;
  if (!explained.data) return html`<section class="card">${head}<${Busy} /></section>`;
  const { verdict, incremental, constructs, advice, moves, nodes } = explained.data;
  return html`<section class="card">${head}
    <div class="inside stack">
      <p class=${`verdict ${incremental ? "good" : "odd"}`}><${Icon} name=${incremental ? "check" : "refresh"} /> <span>${verdict[0].toUpperCase()}${verdict.slice(1)}.</span></p>
      ${moves && html`<p class="dim">${moves}.</p>`}
      ${advice.length > 0 && html`<div class="advice"><h3>What could be done</h3><ul>${advice.map((one) => html`<li key=${one}>${one}</li>`)}</ul></div>`}
      ${constructs.length > 0 && html`<table class="table plain"><caption class="hidden">Constructs</caption><thead><tr><th scope="col">Construct</th><th scope="col">Maintained by</th></tr></thead>
        <tbody>${constructs.map(([construct, how]) => html`<tr key=${construct}><td class="wide"><code>${construct}</code></td><td class="wide">${how}</td></tr>`)}</tbody></table>`}
      <details open=${nodes.length === 1}><summary>${plural(nodes.length, "node")}: rules, and what they read</summary>
        ${nodes.map(
          (node) => html`<div key=${node.name} class="plan-node"><h3>${node.name} ${node.hidden && html`<${Badge}>hidden<//>`} <span class="dim">${node.rule}${node.incremental ? "" : ", not incremental"}</span></h3>
            <dl class="facts"><dt>Computes</dt><dd>${node.computes}</dd><dt>Reads</dt><dd>${node.reads}</dd><dt>Inputs</dt><dd>${node.inputs.join(", ") || "none"}</dd>
              <dt>Rows</dt><dd>${node.rows !== null ? count(node.rows) : node.estimated_rows === null ? "not known" : `about ${count(node.estimated_rows)}`}</dd>
              ${node.shared_with.length > 0 && html`<dt>Shared with</dt><dd>${node.shared_with.join(", ")}</dd>`}</dl></div>`,
        )}
      </details>
    </div>
  </section>`;
}

function Columns({ view, lineage }) {
  const origins = new Map();
  for (const one of lineage?.columns ?? []) origins.set(one.column, one);
  const columns = [
    { key: "name", title: "Column", cell: (row) => html`<code>${row.name}</code>` },
    { key: "type", title: "Type", cell: (row) => html`<code class="dim">${row.type}</code>` },
    ...(origins.size ? [{ key: "from", title: "Comes from", wide: true, cell: (row) => html`<${Origins} of=${origins.get(row.name)} />` }] : []),
    ...(view.columns.some((column) => column.comment) ? [{ key: "comment", title: "Comment", wide: true, cell: (row) => row.comment ?? "" }] : []),
  ];
  return html`<section class="card"><header><h2>Columns</h2><span class="dim">${view.columns.length}</span></header><${Table} label="Columns" columns=${columns} rows=${view.columns} /></section>`;
}

const Origins = ({ of }) => (of?.from ?? []).map((one) => html`<code key=${`${one.table}.${one.column}`} class="origin">${one.table}.${one.column}</code> `);

function Neighbours({ view, lineage }) {
  const all = lineage.data?.result ?? [];
  const list = (label, direction) => {
    const found = all.filter((one) => (direction === "reads") === (one.direction === "reads"));
    const direct = found.filter((one) => one.direct);
    const far = found.filter((one) => !one.direct);
    const names = (some) => some.map((one) => html`<li key=${one.other}>${one.kind === "view" ? html`<a href=${link("view", one.other)}>${one.other}</a>` : html`<span>${one.other}</span>`}<span class="dim">${one.kind}</span></li>`);
    return html`<div><h3>${label}</h3>${direct.length ? html`<ul class="names">${names(direct)}</ul>` : html`<p class="dim">nothing</p>`}
      ${far.length > 0 && html`<details><summary>${far.length} more, not directly</summary><ul class="names">${names(far)}</ul></details>`}</div>`;
  };
  return html`<section class="card"><header><h2>Sources and readers</h2><span class="ends"><a href=${link("graph", { view: view.name })}>In the graph</a></span></header>
    <div class="inside neighbours">${lineage.problem ? html`<${Failure} problem=${lineage.problem} />` : html`${list("Reads", "reads")}${list("Read by", "is read by")}`}</div></section>`;
}
