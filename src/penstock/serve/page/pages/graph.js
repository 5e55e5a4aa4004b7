// The graph of tables and views: who reads whom, how fresh each is, and what moves right now. Also as a table.

import { api } from "../api.js";
import { Ago, Badge, Busy, Button, Choice, Empty, Failure, Icon, Lag, Table, age, classes, go, html, link, plural, setParams, useCallback, useData, useEffect, useEvents, useGathered, useMemo, useRef, useState } from "../ui.js";
import { Canvas, kindOf } from "./graph-canvas.js";
import { FOLDS, folded, known, lagNow, path, placed, standing } from "./graph-layout.js";
import { ViewActions } from "./view-actions.js";

export const title = "Graph";
export const styles = "pages/graph.css";

const FILTERS = [
  { key: "late", title: "over target", tone: "bad", icon: "▲", holds: (stand) => stand.tone === "late" },
  { key: "failing", title: "failing", tone: "bad", icon: "✕", holds: (stand) => stand.failing },
  { key: "suspended", title: "suspended", tone: "", icon: "‖", holds: (stand) => stand.suspended },
  { key: "recomputed", title: "recomputed", tone: "odd", icon: "↻", holds: (stand) => stand.recomputed },
  { key: "immediate", title: "immediate", tone: "calm", icon: "⚡", holds: (stand) => stand.immediate },
];

export default function GraphPage({ params, role }) {
  const asked = useData((signal) => api.get("graph", {}, { signal }), []);
  const { live, working, beats } = useLive(asked);
  const nodes = useMemo(() => asked.data && known({ nodes: asked.data.nodes.map((node) => ({ ...node, at: asked.at, ...live.get(node.name) })) }), [asked.data, live]);
  if (asked.problem && !nodes) return html`<${Failure} problem=${asked.problem} again=${asked.reload} />`;
  if (!nodes) return html`<${Busy} label="Loading the graph" />`;
  if (!nodes.size) {
    return html`<${Empty} title="Nothing here yet" icon="graph">
      <p>Make a table and a view of it: <code>CREATE TABLE</code>, <code>CREATE MATERIALIZED VIEW</code>.</p>
      <p><a href=${link("sql")}>To the SQL console</a></p><//>`;
  }
  return html`<${Graph} nodes=${nodes} groups=${asked.data.groups} shape=${asked.data} at=${asked.at} working=${working} beats=${beats} params=${params} role=${role} reload=${asked.reload} />`;
}

/** What events tell, until the graph is asked for again: what is being refreshed, and what has just moved. */
function useLive(asked) {
  const [live, setLive] = useState(new Map());
  const [working, setWorking] = useState(new Set());
  const [beats, setBeats] = useState(new Map());
  const count = useRef(0);
  const again = useGathered(asked.reload, 2500);
  useEffect(() => setLive(new Map()), [asked.data]);
  const beat = (names, kind) =>
    setBeats((was) => {
      const now = new Map(was);
      for (const name of names) now.set(name, { number: ++count.current, kind });
      return now;
    });
  const done = (names) => setWorking((was) => new Set([...was].filter((name) => !names.includes(name))));
  const learn = (name, told) => setLive((was) => new Map(was).set(name, { ...was.get(name), ...told, at: Date.now() }));
  useEvents(({ kind, data }) => {
    if (kind === "refresh") setWorking((was) => new Set(was).add(data.view));
    else if (kind === "node") {
      if (data.views.includes(data.node)) {
        done([data.node]);
        if (data.status === "SUCCEEDED") learn(data.node, { lag_seconds: data.seconds, stale: false, last_action: data.action, last_reason: data.reason, failed: false });
        if (data.action !== "NO_DATA") beat([data.node], data.status === "FAILED" ? "bad" : "");
      }
      again();
    } else if (kind === "epoch") {
      done(data.views.map((view) => view.view));
      beat(data.views.map((view) => view.view), "");
      again();
    } else if (kind === "failure") {
      done([data.view]);
      learn(data.view, { failed: true });
      beat([data.view], "bad");
      again();
    } else again();
  });
  useEffect(() => {
    const timer = setInterval(() => document.hidden || again(), 20_000); // another process may do what makes no epoch
    return () => clearInterval(timer);
  }, []);
  return { live, working, beats };
}

function Graph({ nodes, groups, shape, at, working, beats, params, role }) {
  const show = params.show === "table" ? "table" : "graph";
  const fold = FOLDS.some((one) => one.value === params.fold) ? params.fold : "none";
  const [open, setOpen] = useState(new Set());
  const [find, setFind] = useState(params.find ?? "");
  const [filters, setFilters] = useState(new Set());
  const chosen = params.view && (nodes.has(params.view) || params.view.startsWith("fold ")) ? params.view : null;
  const [aim, setAim] = useState(chosen ? { id: chosen, near: true } : null);

  // where things are does not depend on how fresh they are: it is found anew only if the graph is another one
  const structure = useMemo(() => JSON.stringify(shape.edges) + [...nodes.keys()].join(), [shape]);
  const placing = useMemo(() => {
    const drawn = folded(nodes, fold, open);
    return { drawn, at: placed(drawn, 1.9) };
  }, [structure, fold, open]);
  const drawn = useMemo(() => {
    const fresh = new Map([...placing.drawn.nodes].map(([id, one]) => [id, one.node ? { id, node: nodes.get(one.node.name) } : one]));
    return { ...placing.drawn, nodes: fresh, all: nodes };
  }, [placing, nodes]);
  const outlined = useMemo(() => groups.map((group) => [...new Set(group.map((name) => drawn.homes.get(name)))]).filter((group) => group.length > 1 && group.every((id) => !id.startsWith("fold "))), [placing, groups]);

  const choose = useCallback((id) => setParams({ view: id ?? "" }), []);
  const opened = (id) => {
    if (!id.startsWith("fold ")) return nodes.get(id).kind === "view" ? go("view", id) : choose(id);
    setOpen((was) => new Set(was).add(id.slice(5)));
    choose(null);
  };
  const refold = (value) => {
    setOpen(new Set());
    setParams({ fold: value === "none" ? "" : value });
  };

  const stands = [...nodes.values()].map((node) => [node, standing(node)]);
  const wanted = find.trim().toLowerCase();
  const active = FILTERS.filter((one) => filters.has(one.key));
  const fits = ([node, stand]) => (!wanted || node.name.toLowerCase().includes(wanted)) && (!active.length || active.some((one) => one.holds(stand)));
  const found = wanted || active.length ? stands.filter(fits).map(([node]) => node) : null;
  const way = useMemo(() => chosen && nodes.has(chosen) && path(nodes, chosen), [chosen, structure]);
  const lit = found ? new Set(found.map((node) => drawn.homes.get(node.name))) : way ? new Set([chosen, ...way.up, ...way.down].map((name) => drawn.homes.get(name))) : null;
  const home = chosen && drawn.homes.get(chosen);
  const homesOf = (names) => new Set([home, ...[...names].map((name) => drawn.homes.get(name))]);
  const [above, below] = way ? [homesOf(way.up), homesOf(way.down)] : [];
  const edgeLit = (from, to) => (found ? lit.has(from) && lit.has(to) : way && ((above.has(from) && above.has(to)) || (below.has(from) && below.has(to))));

  const search = useRef();
  useEffect(() => {
    const slash = (event) => {
      if (event.key !== "/" || event.target.closest("input, textarea, select, dialog")) return;
      event.preventDefault();
      search.current?.focus();
    };
    addEventListener("keydown", slash);
    return () => removeEventListener("keydown", slash);
  }, []);
  const step = useRef(0);
  const searched = (event) => {
    if (event.key === "Escape") {
      setFind("");
      event.target.blur();
    }
    if (event.key !== "Enter" || !found?.length) return;
    const next = found[step.current++ % found.length].name;
    const id = drawn.homes.get(next);
    choose(id === next ? next : id);
    setAim({ id, near: true });
  };
  const flip = (key) =>
    setFilters((was) => {
      const now = new Set(was);
      now.delete(key) || now.add(key);
      return now;
    });

  const views = stands.filter(([node]) => node.kind === "view").length;
  return html`<div class="graph-page">
    <h1 class="hidden">Graph</h1>
    <div class="graph-bar">
      <${Choice} label="Show as" value=${show} onChange=${(value) => setParams({ show: value === "graph" ? "" : value })} options=${[{ value: "graph", title: "Graph", icon: "graph" }, { value: "table", title: "Table", icon: "table" }]} />
      <label class="search"><${Icon} name="search" size=${14} /><span class="hidden">Find by name</span>
        <input ref=${search} type="search" placeholder="Find by name" value=${find} onInput=${(event) => { step.current = 0; setFind(event.target.value); }} onKeyDown=${searched} />
        <kbd aria-hidden="true">/</kbd></label>
      <select aria-label="Folding" value=${fold} onChange=${(event) => refold(event.target.value)} class=${show === "table" ? "gone" : ""}>${FOLDS.map((one) => html`<option key=${one.value} value=${one.value}>${one.title}</option>`)}</select>
      ${open.size > 0 && show === "graph" && html`<${Button} icon="minus" onClick=${() => setOpen(new Set())}>Fold again<//>`}
      <div class="filters" role="group" aria-label="Only those that are">
        ${FILTERS.map((one) => {
          const number = stands.filter(([, stand]) => one.holds(stand)).length;
          return (number > 0 || filters.has(one.key)) && html`<button key=${one.key} type="button" class=${classes("filter", one.tone)} aria-pressed=${filters.has(one.key) ? "true" : "false"} onClick=${() => flip(one.key)}><span aria-hidden="true">${one.icon}</span> <b>${number}</b> ${one.title}</button>`;
        })}
      </div>
      <p class="tally" role="status">${found ? `${plural(found.length, "match", "matches")}` : `${plural(views, "view")}, ${plural(nodes.size - views, "table")}`}</p>
    </div>
    ${show === "table"
      ? html`<${AsTable} nodes=${found ?? [...nodes.values()]} at=${at} />`
      : html`<div class=${classes("graph-stage", chosen && "with-panel")}>
          <${Canvas} drawn=${drawn} at=${placing.at} groups=${outlined} chosen=${home ?? chosen} lit=${lit} edgeLit=${edgeLit} beats=${beats} working=${working} since=${at}
            onChoose=${choose} onOpen=${opened} aim=${aim} label=${`Graph of ${plural(nodes.size, "table and view", "tables and views")}`} />
          <${Legend} groups=${outlined.length > 0} />
          ${chosen && html`<${Panel} key=${chosen} id=${chosen} node=${nodes.get(chosen)} fold=${drawn.nodes.get(chosen)} nodes=${nodes} at=${at} way=${way} role=${role} onChoose=${(id) => { choose(id); if (id) setAim({ id, near: false }); }} onOpen=${opened} />`}
        </div>`}
  </div>`;
}

// -- one node ---------------------------------------------------------------------------------------------------------

function Panel({ id, node, fold, nodes, at, way, role, onChoose, onOpen }) {
  const head = (name, badge) => html`<header><h2>${name}</h2>${badge}<${Button} kind="quiet" icon="close" label="Close" onClick=${() => onChoose(null)} /></header>`;
  if (!node) {
    if (!fold) return null;
    return html`<aside class="graph-panel" aria-label=${fold.fold}>${head(fold.fold, html`<${Badge}>${fold.members.length} folded<//>`)}
      <p><${Button} icon="plus" onClick=${() => onOpen(id)}>Unfold<//></p>
      <ul class="names">${fold.members.map((name) => html`<li key=${name}><${Name} node=${nodes.get(name)} /></li>`)}</ul></aside>`;
  }
  const isView = node.kind === "view";
  const list = (label, names) =>
    names.length > 0 &&
    html`<section><h3>${label} <span class="dim">${names.length}</span></h3><ul class="names">${names.map((name) => html`<li key=${name}><button type="button" class="textual" onClick=${() => onChoose(name)}>${name}</button>${nodes.has(name) && html`<${Shape} node=${nodes.get(name)} />`}</li>`)}</ul></section>`;
  return html`<aside class="graph-panel" aria-label=${node.name}>
    ${head(node.name, html`<${Badge}>${kindOf(node)}<//>`)}
    ${isView && html`<div class="panel-actions"><a class="button main" href=${link("view", node.name)}>Open</a><${ViewActions} view=${node} role=${role} small /></div>`}
    ${isView &&
    html`<dl class="facts">
      <dt>State</dt><dd>${node.state_in_words}</dd>
      <dt>Lag</dt><dd><${Lag} seconds=${lagNow(node, 0)} target=${node.target_lag_seconds} at=${node.at ?? at} still=${node.immediate && !node.stale} /></dd>
      ${node.stale && html`<dt>Behind</dt><dd>${Object.entries(node.behind).map(([name, new_]) => `${name} (${new_ === null ? "gone or replaced" : plural(new_, "commit")})`).join(", ")}</dd>`}
      <dt>Refresh</dt><dd>${node.refresh}</dd>
      <dt>Policy</dt><dd>${node.policy}</dd>
      <dt>Last refresh</dt><dd>${node.last_refresh ? html`<${Ago} at=${node.last_refresh} />, ${node.last_action} (${node.last_reason})` : "never"}</dd>
      ${!node.incremental && html`<dt>Maintained</dt><dd>recomputed at every change (${node.reason})</dd>`}
      ${node.last_error && html`<dt>Error</dt><dd class="error-text">${node.last_error}</dd>`}
    </dl>`}
    ${list("Reads", node.reads)}${list("Read by", node.readers)}
    <p class="dim">${plural(way?.up.size ?? 0, "node")} upstream, ${way?.down.size ?? 0} downstream.</p>
  </aside>`;
}

const Name = ({ node }) => html`${node.kind === "view" ? html`<a href=${link("view", node.name)}>${node.name}</a>` : html`<span>${node.name}</span>`}<${Shape} node=${node} />`;

function Shape({ node }) {
  const { tone, lag } = standing(node);
  if (tone === "table") return html`<span class="dim">${node.kind}</span>`;
  return html`<span class=${classes("lag", { failing: "bad", late: "bad", near: "near", good: "good" }[tone])}>${tone === "failing" || tone === "suspended" ? tone : lag === null ? "no rows yet" : age(lag)}</span>`;
}

const Legend = ({ groups }) => html`<details class="legend"><summary>Legend</summary>
  <ul>
    <li class="is-good"><i>●</i> within its target lag</li><li class="is-near"><i>◆</i> over 80 % of it</li><li class="is-late"><i>▲</i> over its target</li>
    <li class="is-failing"><i>✕</i> failing</li><li class="is-suspended"><i>‖</i> suspended</li><li class="is-free"><i>○</i> no target, or no rows yet</li>
    <li><i><${Icon} name="refresh" size=${12} /></i> recomputed last time</li><li><i><${Icon} name="bolt" size=${12} /></i> IMMEDIATE</li><li><i><${Icon} name="pause" size=${12} /></i> held back by another</li>
    ${groups && html`<li><i class="sample-group" /> published together</li>`}
  </ul></details>`;

// -- the same as a table ----------------------------------------------------------------------------------------------

function AsTable({ nodes, at }) {
  const columns = [
    { key: "name", title: "Name", sort: true, cell: (node) => (node.kind === "view" ? html`<a href=${link("view", node.name)}>${node.name}</a>` : node.name) },
    { key: "kind", title: "Kind", sort: kindOf, cell: kindOf, hide: "phone" },
    { key: "state", title: "State", sort: true, cell: (node) => node.kind === "view" && html`<${StateBadge} node=${node} />` },
    { key: "lag", title: "Lag / target", sort: (node) => lagNow(node, 0), down: true, cell: (node) => node.kind === "view" && html`<${Lag} seconds=${lagNow(node, 0)} target=${node.target_lag_seconds} at=${node.at ?? at} still=${node.immediate && !node.stale} />` },
    { key: "refresh", title: "Refresh", sort: true, hide: "phone" },
    { key: "last_action", title: "Last action", sort: true, hide: "phone", cell: (node) => node.last_action && html`${node.last_action} <span class="dim">${node.last_reason}</span>` },
    { key: "layer", title: "Layer", sort: true, end: true, hide: "phone" },
    { key: "reads", title: "Reads", sort: (node) => node.reads.length, wide: true, cell: (node) => node.reads.join(", "), hide: "phone" },
    { key: "readers", title: "Read by", sort: (node) => node.readers.length, wide: true, cell: (node) => node.readers.join(", "), hide: "phone" },
  ];
  return html`<div class="graph-table"><${Table} label="Tables and views" columns=${columns} rows=${nodes} onOpen=${(node) => node.kind === "view" && go("view", node.name)} empty="No table or view is like that." /></div>`;
}

export function StateBadge({ node }) {
  const { failing, suspended, recomputed, held } = standing(node);
  const tone = failing ? "bad" : suspended ? "" : node.state === "ACTIVE" ? "good" : "";
  const word = failing ? (node.state === "ERROR" ? "ERROR" : "FAILED") : node.state;
  return html`<${Badge} tone=${tone}>${word}<//>${held && html` <${Badge} tone="bad" title=${`by ${node.held_back_by.join(", ")}`}>held back<//>`}${recomputed && html` <${Badge} tone="odd">recomputed<//>`}`;
}
