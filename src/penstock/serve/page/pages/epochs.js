// What ran when: the epochs, and of each a timeline of its nodes side by side, with the path on which its end hung.

import { api } from "../api.js";
import { Ago, Badge, Busy, Button, Duration, Empty, Failure, Icon, Moment, Table, classes, count, duration, go, html, link, plural, useData, useEvents, useGathered, useMemo, useNow, useState } from "../ui.js";
import { Actions, Phases, PHASES, Rows, wall } from "./epoch-parts.js";

export const title = "Epochs";
export const styles = ["pages/work.css"];

const PAGE = 100;

export default function Epochs({ parts }) {
  const asked = parts[0];
  if (asked === undefined) return html`<${List} />`;
  if (!/^\d{1,9}$/.test(asked)) return html`<${Empty} title="No such epoch" icon="epochs"><p><a href=${link("epochs")}>All epochs</a></p><//>`;
  return html`<${One} key=${asked} number=${Number(asked)} />`;
}

// -- all of them ------------------------------------------------------------------------------------------------------

function List() {
  const [size, setSize] = useState(PAGE);
  const found = useData((signal) => api.get("epochs", { limit: size }, { signal }), [size]);
  const again = useGathered(found.reload);
  useEvents((event) => ["epoch", "gap"].includes(event.kind) && again());
  const rows = found.data?.result;
  return html`<div class="page">
    <div class="page-head"><h1>Epochs</h1><span class="dim">Each is one step of all views: what was due, from one state of the tables.</span></div>
    <${Running} />
    ${found.problem && html`<${Failure} problem=${found.problem} again=${found.reload} />`}
    ${!rows ? !found.problem && html`<${Busy} />` : !rows.length ? html`<${Empty} title="No epochs yet" icon="epochs"><p>The first comes with the first view.</p><//>` : html`<div class="stack">
      <section class="card"><header><h2>Seconds by epoch</h2><span class="dim">the last ${Math.min(rows.length, 80)}, newest to the right</span></header>
        <div class="inside"><${Strip} rows=${rows.slice(0, 80)} /></div></section>
      <section class="card"><${Table} label="Epochs" columns=${COLUMNS} rows=${rows} id=${(row) => row.epoch} onOpen=${(row) => go("epochs", row.epoch)} />
        ${rows.length >= size && html`<div class="card-foot"><${Button} busy=${found.busy} onClick=${() => setSize(size + PAGE)}>Older<//></div>`}</section>
    </div>`}
  </div>`;
}

const COLUMNS = [
  { key: "epoch", title: "Epoch", sort: true, down: true, end: true, cell: (row) => html`<a class="number" href=${link("epochs", row.epoch)}>${row.epoch}</a>` },
  { key: "published", title: "Published", sort: (row) => row.published_at, down: true, cell: (row) => html`<${Ago} at=${row.published_at} />` },
  { key: "took", title: "Took", sort: wall, down: true, end: true, cell: (row) => html`<${Duration} seconds=${wall(row)} />` },
  { key: "phases", title: "Work", sort: (row) => row.seconds, down: true, hide: "phone", cell: (row) => html`<${Phases} phases=${row.phases} seconds=${row.seconds} />` },
  { key: "views", title: "Views", wide: true, sort: (row) => row.views.length, down: true, cell: (row) => html`<${Names} row=${row} />` },
  { key: "rows", title: "Rows", end: true, sort: (row) => row.rows_inserted + row.rows_deleted, down: true, cell: (row) => html`<${Rows} row=${row} />` },
  { key: "due", title: "Why", wide: true, hide: "phone", cell: (row) => html`<span class="dim">${reasons(row.due)}</span>` },
];

function Names({ row }) {
  if (row.restored !== null) return html`<${Badge} tone="odd">restored from ${row.restored}<//>`;
  if (!row.views.length) return html`<span class="dim">tables only</span>`;
  const [shown, more] = [row.views.slice(0, 4), row.views.length - 4];
  return html`${shown.join(", ")}${more > 0 ? html`<span class="dim" title=${row.views.slice(4).join(", ")}>, and ${more} more</span>` : ""}`;
}

/** The different reasons for which views were due, the most frequent first. */
function reasons(due) {
  const counted = new Map();
  for (const why of Object.values(due)) counted.set(why, (counted.get(why) ?? 0) + 1);
  return [...counted].sort((a, b) => b[1] - a[1]).map(([why, times]) => (times > 1 ? `${why} (${times})` : why)).join(", ");
}

/** A bar an epoch; the table below tells the same. */
function Strip({ rows }) {
  const [at, setAt] = useState(null);
  const most = Math.max(...rows.map((row) => wall(row) ?? 0), 0.001);
  const newest = [...rows].reverse();
  return html`<div class="strip" aria-hidden="true" onMouseLeave=${() => setAt(null)}>
    <div class="strip-bars">
      ${newest.map((row) => {
        const height = { height: `${Math.max(3, (100 * (wall(row) ?? 0)) / most)}%` };
        return html`<div key=${row.epoch} class=${classes("strip-bar", row.restored !== null && "odd", at === row && "at")} onMouseEnter=${() => setAt(row)} onClick=${() => go("epochs", row.epoch)}><i style=${height} /></div>`;
      })}
    </div>
    <div class="strip-foot"><span>${at ? `Epoch ${at.epoch}: ${duration(wall(at))}, ${plural(at.views.length, "view")}` : `up to ${duration(most)}`}</span></div>
  </div>`;
}

/** What goes on now, as the events tell it. */
function Running() {
  const [going, setGoing] = useState({ since: 0, views: new Map() });
  const now = useNow();
  useEvents(({ kind, data }) => {
    if (kind === "refresh") setGoing((was) => ({ since: was.views.size ? was.since : Date.now(), views: new Map([...was.views, [data.view, "running"]]) }));
    if (kind === "node") setGoing((was) => ({ ...was, views: new Map([...was.views].map(([view, how]) => [view, data.views.includes(view) ? "through" : how])) }));
    if (["epoch", "failure", "gap"].includes(kind)) setGoing({ since: 0, views: new Map() });
  });
  if (!going.views.size) return null;
  const through = [...going.views.values()].filter((how) => how === "through").length;
  return html`<p class="running" role="status"><span class="spin" aria-hidden="true" /> <b>Running</b> ${[...going.views.keys()].slice(0, 6).join(", ")}${going.views.size > 6 ? ` and ${going.views.size - 6} more` : ""}
    <span class="dim">${through} of ${going.views.size} through, ${duration(Math.max(0, (now - going.since) / 1000))}</span></p>`;
}

// -- one of them ------------------------------------------------------------------------------------------------------

function One({ number }) {
  const found = useData((signal) => api.get(`epochs/${number}`, {}, { signal }), [number]);
  const newest = useData((signal) => api.get("epochs", { limit: 1 }, { signal }), []);
  useEvents((event) => event.kind === "epoch" && newest.reload());
  const told = found.data;
  const last = newest.data?.epoch ?? number;
  return html`<div class="page">
    <nav class="crumbs" aria-label="Where this is"><a href=${link("epochs")}>Epochs</a></nav>
    <div class="page-head">
      <h1>Epoch ${number}</h1>
      ${told && html`<span class="dim"><${Moment} at=${told.published_at} />, <${Ago} at=${told.published_at} /></span>`}
      ${told?.restored !== null && told && html`<${Badge} tone="odd">restored from epoch ${told.restored}<//>`}
      <span class="ends">
        <${Button} label="The epoch before" disabled=${number <= 1} onClick=${() => go("epochs", number - 1)}>‹ ${Math.max(number - 1, 0)}<//>
        <${Button} label="The next epoch" disabled=${number >= last} onClick=${() => go("epochs", number + 1)}>${number + 1} ›<//>
      </span>
    </div>
    ${found.problem ? html`<${Failure} problem=${found.problem} again=${found.reload} />` : !told ? html`<${Busy} />` : html`<${Told} told=${told} />`}
  </div>`;
}

function Told({ told }) {
  const failed = told.views.filter((view) => view.error);
  return html`<div class="stack">
    <section class="card"><header><h2>Timeline</h2><span class="dim">${summary(told)}</span><span class="ends"><${Legend} /></span></header>
      <div class="inside">${told.nodes.length ? html`<${Gantt} told=${told} />` : html`<p class="nothing">${told.restored !== null ? "All views went back to a checkpoint; nothing was computed." : "No view was touched: this epoch published tables."}</p>`}</div></section>
    ${failed.map((view) => html`<${Failure} key=${view.view} problem=${{ detail: `${view.view}: ${view.error}`, help: view.suggestion }} />`)}
    ${told.nodes.length > 0 && html`<section class="card"><header><h2>What was done</h2></header>
      <${Table} label="What was done to each node" columns=${NODE_COLUMNS} rows=${told.nodes} id=${(row) => row.name} /></section>`}
    <div class="grid">
      ${told.views.length > 0 && html`<section class="card"><header><h2>What was due, and why</h2></header><${Table} label="What was due, and why" columns=${DUE_COLUMNS} rows=${told.views} id=${(row) => row.view} /></section>`}
      <section class="card"><header><h2>Read from</h2></header><div class="inside">
        ${Object.keys(told.sources).length
          ? html`<dl class="facts">${Object.entries(told.sources).map(([name, version]) => html`<dt key=${name}>${name}</dt><dd>version <span class="number">${version}</span></dd>`)}${told.run && html`<dt>commits are named</dt><dd class="mono">${told.run}</dd>`}</dl>`
          : html`<p class="dim">The versions are no longer kept, or no table was read.</p>`}</div></section>
    </div>
  </div>`;
}

function summary(told) {
  const jobs = told.nodes.reduce((sum, node) => sum + (node.jobs ?? 0), 0);
  const work = told.nodes.reduce((sum, node) => sum + node.seconds, 0);
  const took = told.seconds === null ? null : `${duration(told.seconds)} from begin to end`;
  return [took, `${duration(work)} of work on ${plural(told.nodes.length, "node")}`, plural(jobs, "Spark job")].filter(Boolean).join(" · ");
}

const named = (node, steps) => (node.hidden ? `${node.views[0]}, step ${steps.get(node.name)}` : node.name);

/** Hidden nodes are steps on the way to their view; here, which one of them. */
function stepsOf(nodes) {
  const [steps, counted] = [new Map(), new Map()];
  for (const node of nodes.filter((one) => one.hidden)) {
    counted.set(node.views[0], (counted.get(node.views[0]) ?? 0) + 1);
    steps.set(node.name, counted.get(node.views[0]));
  }
  return steps;
}

function Gantt({ told }) {
  const { nodes } = told;
  const steps = useMemo(() => stepsOf(nodes), [nodes]);
  const timed = nodes.filter((node) => node.begun !== null);
  const whole = Math.max(told.seconds ?? 0, ...nodes.map((node) => node.ended ?? node.seconds), 0.001);
  const rows = [
    ...(timed.length ? [{ rest: true, name: "preparing", begun: 0, ended: Math.min(...timed.map((node) => node.begun)) }] : []),
    ...nodes,
    ...(timed.length && told.seconds !== null ? [{ rest: true, name: "publishing", begun: Math.max(...timed.map((node) => node.ended)), ended: whole }] : []),
  ].filter((row) => !row.rest || row.ended > row.begun);
  const share = (seconds) => `${Math.min(100, (100 * seconds) / whole)}%`;
  return html`<div class="gantt">
    ${timed.length < nodes.length && html`<p class="dim">${timed.length ? "Of some nodes" : "Of this epoch"} it was not recorded when each ran: an older Penstock published it. Hatched bars tell how long they took.</p>`}
    <div class="gantt-axis" aria-hidden="true"><span /><span class="gantt-ticks">${ticks(whole).map((tick) => html`<i key=${tick} style=${{ left: share(tick) }}>${duration(tick)}</i>`)}</span><span /></div>
    <ol class="gantt-rows" aria-label="Nodes in the order in which they began">
      ${rows.map((row) => {
        const begun = row.begun ?? 0;
        const ended = row.ended ?? row.seconds;
        const place = { left: share(begun), width: `max(2px, ${share(ended - begun)})` };
        return html`<li key=${row.name} class=${classes("gantt-row", row.critical && "critical", row.rest && "rest", row.hidden && "step")}>
          <span class="gantt-name" title=${row.hidden ? row.name : undefined}>${row.rest ? row.name : html`<a href=${link("view", row.views[0])}>${named(row, steps)}</a>`}${row.critical && html`<span class="hidden"> (critical)</span>`}</span>
          <span class="gantt-track">
            ${ticks(whole).map((tick) => html`<i key=${tick} class="gantt-grid" style=${{ left: share(tick) }} />`)}
            <span class=${classes("gantt-bar", row.begun === null && "untimed", row.status === "FAILED" && "failed")} style=${place} title=${row.rest ? undefined : said(row)}><${Bar} row=${row} span=${ended - begun} /></span>
          </span>
          <span class="gantt-time number">${row.rest || row.begun === null ? duration(ended - begun) : duration(row.seconds)}</span></li>`;
      })}
    </ol></div>`;
}

/** A bar's pieces: waiting for its turn, then each phase. */
function Bar({ row, span }) {
  if (row.rest || !(span > 0)) return null;
  const pieces = [["waited", row.waited], ...PHASES.map((phase) => [phase, row.phases[phase] ?? 0])].filter(([, seconds]) => seconds > 0);
  const whole = Math.max(span, pieces.reduce((sum, [, seconds]) => sum + seconds, 0));
  return pieces.map(([name, seconds]) => html`<i key=${name} class=${`phase ${name}`} style=${{ width: `${(100 * seconds) / whole}%` }} />`);
}

function said(node) {
  const phases = PHASES.filter((phase) => node.phases[phase] >= 0.001).map((phase) => `${phase} ${duration(node.phases[phase])}`);
  const when = node.begun === null ? [] : [`from ${duration(node.begun)} to ${duration(node.ended)}`];
  const waited = node.waited ? [`waited ${duration(node.waited)} for its turn`] : [];
  return [`${node.action} (${node.reason})${node.strategy ? `, ${node.strategy}` : ""}`, ...when, ...waited, ...phases, `+${count(node.rows_inserted)} -${count(node.rows_deleted)} rows`].join("\n");
}

const Legend = () => html`<span class="legend" aria-hidden="true">
  ${PHASES.map((phase) => html`<span key=${phase}><i class=${`phase ${phase}`} />${phase}</span>`)}<span><i class="critical-mark" />critical path</span></span>`;

/** Some round numbers from nothing to the whole. */
function ticks(whole) {
  const rough = whole / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
  return Array.from({ length: Math.floor(whole / step + 0.05) + 1 }, (_, place) => Number((place * step).toPrecision(6)));
}

const NODE_COLUMNS = [
  { key: "name", title: "Node", cell: (row) => (row.hidden ? html`<span class="dim">step of</span> <a href=${link("view", row.views[0])}>${row.views[0]}</a>${row.views.length > 1 ? html`<span class="dim" title=${row.views.slice(1).join(", ")}> and ${row.views.length - 1} more</span>` : ""}` : html`<a href=${link("view", row.name)}>${row.name}</a>`), sort: (row) => row.views[0] },
  { key: "action", title: "Action", sort: (row) => row.action, cell: (row) => html`<${Actions} row=${row} />` },
  { key: "strategy", title: "How", sort: true, hide: "phone", cell: (row) => row.strategy ?? html`<span class="dim">–</span>` },
  { key: "begun", title: "From", end: true, sort: true, cell: (row) => html`<${Duration} seconds=${row.begun} />` },
  { key: "ended", title: "To", end: true, sort: true, hide: "phone", cell: (row) => html`<${Duration} seconds=${row.ended} />` },
  { key: "seconds", title: "Seconds", end: true, sort: true, down: true, cell: (row) => html`<${Duration} seconds=${row.seconds} />` },
  { key: "rows", title: "Rows", end: true, sort: (row) => row.rows_inserted + row.rows_deleted, down: true, cell: (row) => html`<${Rows} row=${row} />` },
  { key: "jobs", title: "Spark jobs", end: true, sort: true, down: true, hide: "phone", cell: (row) => html`<span class="number">${count(row.jobs)}</span>` },
  { key: "critical", title: "Critical", sort: (row) => (row.critical ? 0 : 1), cell: (row) => row.critical && html`<${Badge} tone="near">critical<//>` },
];

const DUE_COLUMNS = [
  { key: "view", title: "View", sort: true, cell: (row) => html`<a href=${link("view", row.view)}>${row.view}</a>` },
  { key: "due", title: "Due", wide: true, sort: true, cell: (row) => row.due ?? html`<span class="dim">asked for, or in the statement that wrote</span>` },
  { key: "action", title: "Action", cell: (row) => html`<${Actions} row=${row} />` },
];
