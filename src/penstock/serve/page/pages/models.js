// Read models: a document is found by its key or by a filter, seen as a tree, and watched while it changes.

import { api } from "../api.js";
import { Ago, Badge, Busy, Button, Copy, Empty, Failure, Field, Icon, Table, classes, exactly, go, html, link, plural, useData, useEffect, useEvents, useGathered, useMemo, useRef, useState } from "../ui.js";
import { Tree, brief, differences, keyOf, written } from "./document.js";

export const title = "Models";
export const styles = ["pages/work.css"];

const PAGE = 50;
const KEPT = 100;
const at = (...parts) => ["read", ...parts].map(encodeURIComponent).join("/");

export default function Models({ parts, params }) {
  const [name, key] = parts;
  const found = useData((signal) => api.get("read", {}, { signal }), []);
  if (found.problem) return html`<div class="page"><${Failure} problem=${found.problem} again=${found.reload} /></div>`;
  if (!found.data) return html`<${Busy} />`;
  const models = found.data.result;
  if (name === undefined) return html`<${List} models=${models} />`;
  const model = models.find((one) => one.name.toLowerCase() === name.toLowerCase());
  if (!model) return html`<${Empty} title=${`There is no read model ${name}`} icon="models"><p><a href=${link("models")}>All read models</a></p><//>`;
  return html`<${Model} key=${model.name} model=${model} chosen=${key} params=${params} />`;
}

function List({ models }) {
  if (!models.length) {
    return html`<${Empty} title="No read models" icon="models"><p>A table whose name begins with tv_, and that is made by a query with a key and a document, is one:</p>
      <pre class="mono">CREATE TABLE tv_post AS SELECT pk_post, id,${"\n"}  jsonb_build_object('title', title) AS data FROM tb_post</pre><//>`;
  }
  return html`<div class="page"><div class="page-head"><h1>Read models</h1><span class="dim">Documents that are kept as what they are made of changes.</span></div>
    <section class="card"><${Table} label="Read models" columns=${COLUMNS} rows=${models} onOpen=${(row) => go("models", row.name)} /></section></div>`;
}

const COLUMNS = [
  { key: "name", title: "Name", sort: true, cell: (row) => html`<a href=${link("models", row.name)}>${row.name}</a>` },
  { key: "key", title: "Key", sort: true, cell: (row) => html`<code>${row.key}</code>` },
  { key: "filters", title: "Also found by", hide: "phone", cell: (row) => row.filters.join(", ") || html`<span class="dim">–</span>` },
  { key: "refresh", title: "Refresh", sort: true, cell: (row) => html`<${Badge} tone=${row.refresh === "IMMEDIATE" ? "calm" : ""}>${row.refresh}<//>` },
  { key: "sources", title: "Made of", wide: true, hide: "phone", cell: (row) => row.sources.join(", ") },
  { key: "parts", title: "Parts", wide: true, hide: "phone", cell: (row) => html`<span class="dim">${row.parts.filter((part) => !/ scalar\b/.test(part)).join(", ") || "its own columns"}</span>` },
];

function Model({ model, chosen, params }) {
  return html`<div class="page">
    <nav class="crumbs" aria-label="Where this is"><a href=${link("models")}>Models</a></nav>
    <div class="page-head"><h1>${model.name}</h1><${Badge} tone=${model.refresh === "IMMEDIATE" ? "calm" : ""}>${model.refresh}<//>
      <span class="dim">made of ${model.sources.join(", ")}</span><span class="ends"><a class="button" href=${link("view", model.name)}>As a view</a></span></div>
    <div class=${classes("model", chosen !== undefined && "has-document")}>
      <${Finder} model=${model} chosen=${chosen} params=${params} />
      ${chosen === undefined ? html`<section class="card model-none"><${Empty} title="No document chosen" icon="models"><p>Choose one, or look one up.</p><//></section>` : html`<${Watched} key=${chosen} model=${model} name=${chosen} />`}
    </div></div>`;
}

// -- finding ----------------------------------------------------------------------------------------------------------

function Finder({ model, chosen, params }) {
  const columns = model.columns.map((column) => column.name).filter((name) => name.toLowerCase() !== "data");
  const [by, setBy] = useState(columns.includes(params.by) ? params.by : model.key);
  const [value, setValue] = useState(params.value ?? "");
  const [asked, setAsked] = useState(params.value ? { by: columns.includes(params.by) ? params.by : model.key, value: params.value } : null);
  const [pages, setPages] = useState([undefined]);
  const load = async (signal) => {
    const filter = asked ? { [asked.by]: asked.value } : {};
    const found = await Promise.all(pages.map((after) => api.get(at(model.name), { ...filter, limit: PAGE, after }, { signal })));
    return { rows: found.flatMap((page) => page.result), next: found.at(-1).next };
  };
  const found = useData(load, [model.name, asked, pages.length]);
  const again = useGathered(found.reload);
  useEvents((event) => concerns(event, model) && again());
  const look = (event) => {
    event.preventDefault();
    const wanted = value.trim();
    setPages([undefined]);
    setAsked(wanted ? { by, value: wanted } : null);
    if (wanted && by === model.key) go("models", model.name, wanted);
  };
  const clear = () => {
    setValue("");
    setAsked(null);
    setPages([undefined]);
  };
  return html`<section class="card finder" aria-label="Documents">
    <form class="finder-form" onSubmit=${look} role="search">
      <select aria-label="Column" value=${by} onChange=${(event) => setBy(event.target.value)}>${columns.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select>
      <input aria-label="Value" value=${value} onInput=${(event) => setValue(event.target.value)} placeholder="7" spellcheck="false" autocomplete="off" />
      <${Button} type="submit" kind="main" icon="search" label="Look up" />
    </form>
    ${asked && html`<p class="finder-asked"><code>${asked.by} = ${asked.value}</code> <button type="button" class="textual" onClick=${clear}>show all</button></p>`}
    ${found.problem ? html`<div class="inside"><${Failure} problem=${found.problem} /></div>` : !found.data ? html`<${Busy} />` : html`
      <ul class="finder-list" aria-label="Documents found">${found.data.rows.map((row) => html`<li key=${row[model.key]}><a href=${link("models", model.name, String(row[model.key]))} aria-current=${String(row[model.key]) === chosen ? "true" : undefined}>
        <span class="number finder-key">${row[model.key]}</span><span class="finder-brief">${preview(row.data)}</span></a></li>`)}</ul>
      ${!found.data.rows.length && html`<p class="nothing">${asked ? "No document is so." : "It has no documents."}</p>`}
      ${found.data.next && html`<div class="card-foot"><${Button} busy=${found.busy} onClick=${() => setPages([...pages, found.data.next])}>More<//></div>`}`}
  </section>`;
}

/** The first texts of a document, without those that only say which one it is. */
function preview(data) {
  const texts = [];
  const walk = (name, value) => {
    if (texts.length >= 3 || name === "id" || value === null) return;
    if (typeof value !== "object") texts.push(value);
    else for (const [inner, one] of Object.entries(value)) walk(inner, one);
  };
  walk("", data);
  return texts.join(" · ") || brief(data);
}

/** Whether an event may have changed documents. */
function concerns({ kind, data }, model) {
  if (kind === "gap") return true;
  return kind === "epoch" && (data.restored !== null || data.views.some((one) => one.view.toLowerCase() === model.name.toLowerCase()));
}

// -- watching ---------------------------------------------------------------------------------------------------------

function Watched({ model, name }) {
  const [state, setState] = useState({ row: undefined, gone: null, changes: [], marks: new Map() });
  const [problem, setProblem] = useState(null);
  const turn = useRef(Promise.resolve());
  const stop = useMemo(() => new AbortController(), []);
  useEffect(() => () => stop.abort(), []);

  /** Read it as it is; what differs from before came with `epoch`. Looks are taken in their turn. */
  const look = (epoch) => {
    turn.current = turn.current.then(async () => {
      try {
        const found = await api.get(at(model.name, name), {}, { signal: stop.signal });
        setProblem(null);
        setState((was) => follow(was, found, epoch));
      } catch (raised) {
        if (stop.signal.aborted) return;
        if (raised.status === 404) setState((was) => (was.row ? { ...was, gone: was.gone ?? epoch ?? {} } : { ...was, row: null }));
        else setProblem(raised);
      }
    });
  };
  useEffect(() => look(null), []);
  useEvents((event) => concerns(event, model) && look(event.kind === "epoch" ? { number: event.data.epoch, at: event.data.published_at } : null));

  const { row, gone, changes, marks } = state;
  if (problem) return html`<${Failure} problem=${problem} again=${() => look(null)} />`;
  if (row === undefined) return html`<${Busy} />`;
  if (row === null) return html`<section class="card"><${Empty} title=${`No document with ${model.key} ${name}`} icon="models"><p>If it comes, it is shown here.</p><//></section>`;
  const others = model.columns.filter((column) => !["data", model.key.toLowerCase()].includes(column.name.toLowerCase()));
  return html`<div class="stack">
    <section class=${classes("card document", gone && "gone")} aria-label="Document">
      <header><h2>${model.key} = ${name}</h2>${gone ? html`<${Badge} tone="bad">removed${gone.number ? ` in epoch ${gone.number}` : ""}<//>` : html`<span class="dim" title=${exactly(row.updated_at)}>written <${Ago} at=${row.updated_at} /></span>`}
        <span class="ends"><${Copy} text=${JSON.stringify(row.data, null, 2)} label="Copy the document" /></span></header>
      ${others.length > 0 && html`<dl class="inside columns">${others.map((column) => html`<div key=${column.name}><dt>${column.name}</dt><dd>${row[column.name] === null ? html`<span class="null">NULL</span>` : html`<code>${String(row[column.name])}</code>`}</dd></div>`)}</dl>`}
      <div class="document-tree"><${Tree} value=${row.data} marks=${marks} label=${`Document ${name}`} /></div>
    </section>
    <section class="card" aria-label="Changes"><header><h2>Changes</h2><span class="dim">as they happen, while this page is open</span>${marks.size > 0 && html`<span class="ends"><${Button} kind="quiet" onClick=${() => setState({ ...state, marks: new Map() })}>Take the marks away<//></span>`}</header>
      <div role="log" aria-live="polite" aria-label="Changes of the document">${changes.length ? html`<ol class="changes">${changes.map((one) => html`<li key=${one.id}><p>${one.epoch ? html`<a href=${link("epochs", one.epoch.number)}>Epoch ${one.epoch.number}</a> <span class="dim"><${Ago} at=${one.epoch.at} /></span>` : html`<span class="dim">seen <${Ago} at=${one.seen} /></span>`}</p>
        <ul>${one.list.slice(0, 30).map((change) => html`<li key=${change.kind + written(change.path)} class=${change.kind}><code>${written(change.path)}</code> ${change.kind === "changed" ? html`<span class="was">${brief(change.before)}</span> → <span class="is">${brief(change.after)}</span>` : change.kind === "added" ? html`added <span class="is">${brief(change.after)}</span>` : html`removed <span class="was">${brief(change.before)}</span>`}</li>`)}</ul>
        ${one.list.length > 30 && html`<p class="dim">and ${plural(one.list.length - 30, "more place")}</p>`}</li>`)}</ol>` : html`<p class="nothing">Nothing has changed yet.</p>`}</div>
    </section></div>`;
}

let counted = 0;

/** What is shown, once a document was read again. */
function follow(was, found, epoch) {
  if (!was.row || was.row === found) return { ...was, row: found, gone: null };
  const list = differences(was.row.data, found.data);
  if (!list.length && !was.gone) return { ...was, row: found };
  const mark = epoch ? `epoch ${epoch.number}, ${new Date(epoch.at).toLocaleTimeString("en-GB")}` : "changed";
  const marks = new Map(was.marks);
  for (const change of list) marks.set(keyOf(change.kind === "removed" ? change.path.slice(0, -1) : change.path), change.kind === "removed" ? `${change.path.at(-1)} removed, ${mark}` : mark);
  const entry = { id: ++counted, epoch, seen: new Date().toISOString(), list: was.gone ? [{ path: [], kind: "added", after: found.data }] : list };
  return { row: found, gone: null, marks, changes: [entry, ...was.changes].slice(0, KEPT) };
}
