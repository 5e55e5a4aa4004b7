// Settings, checkpoints and watermarks: how they stand, and how they are changed by who may.

import { api } from "../api.js";
import { Action, Ago, Badge, Busy, Button, Confirm, Empty, Failure, Field, Icon, Moment, Table, Tabs, html, link, may, plural, setParams, toast, useData, useEvents, useGathered, useState } from "../ui.js";

export const title = "Settings";
export const styles = ["pages/work.css"];

const TABS = [
  { key: "settings", title: "Settings" },
  { key: "checkpoints", title: "Checkpoints" },
  { key: "watermarks", title: "Watermarks" },
];

export default function Admin({ params, role }) {
  const tab = TABS.some((one) => one.key === params.tab) ? params.tab : "settings";
  const Panel = { settings: Settings, checkpoints: Checkpoints, watermarks: Watermarks }[tab];
  return html`<div class="page"><div class="page-head"><h1>Settings</h1>${!may(role, "admin") && html`<span class="dim">Your role is ${role}: you may look, and an admin may change.</span>`}</div>
    <${Tabs} label="What to see" tabs=${TABS} value=${tab} onChange=${(key) => setParams({ tab: key })}><${Panel} key=${tab} role=${role} /><//></div>`;
}

/** What a path gives, as a table or whatever `children` makes of it. */
function Loaded({ found, children }) {
  if (found.problem && !found.data) return html`<${Failure} problem=${found.problem} again=${found.reload} />`;
  if (!found.data) return html`<${Busy} />`;
  return children(found.data.result);
}

// -- settings ---------------------------------------------------------------------------------------------------------

function Settings({ role }) {
  const found = useData((signal) => api.get("settings", { described: true }, { signal }), []);
  const [edited, setEdited] = useState(null);
  const columns = [
    { key: "name", title: "Setting", sort: true, cell: (row) => html`<code>${row.name}</code>` },
    { key: "value", title: "Value", cell: (row) => html`${row.value === "" ? html`<span class="dim">not set</span>` : row.value} ${row.value !== row.default && html`<${Badge} tone="calm" title=${`Usually ${row.default || "not set"}`}>changed<//>`}` },
    { key: "about", title: "What it is", wide: true, cell: (row) => html`<span class="dim">${row.about}</span>` },
    { key: "edit", title: html`<span class="hidden">Change</span>`, end: true, cell: (row) => html`<${Button} kind="quiet" icon="edit" label=${`Change ${row.name}`} disabled=${!may(role, "admin")} title=${may(role, "admin") ? undefined : `This takes the role admin. Yours is ${role}.`} onClick=${() => setEdited(row)} />` },
  ];
  return html`<${Loaded} found=${found}>${(rows) => html`<section class="card"><${Table} label="Settings" columns=${columns} rows=${rows} /></section>
    ${edited && html`<${Change} setting=${edited} onClose=${() => setEdited(null)} after=${found.reload} />`}`}<//>`;
}

function Change({ setting, onClose, after }) {
  const [value, setValue] = useState(setting.value);
  const save = async () => {
    await api.put(`settings/${encodeURIComponent(setting.name)}`, { value });
    toast(`${setting.name} is ${value || "not set"} now.`);
    after();
  };
  const put = (event) => setValue(event.target.value);
  return html`<${Confirm} title=${`Change ${setting.name}`} yes="Change" onYes=${save} onClose=${onClose} disabled=${value === setting.value}>
    <p>It says ${setting.about}. It holds for the whole warehouse, at once.</p>
    <${Field} label="Value" hint=${`Usually ${setting.default || "not set"}.`}>${(id) => (setting.choices.length ? html`<select id=${id} value=${value} onChange=${put}>${setting.choices.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select>` : html`<input id=${id} value=${value} onInput=${put} autofocus spellcheck="false" autocomplete="off" />`)}<//>
  <//>`;
}

// -- checkpoints ------------------------------------------------------------------------------------------------------

function Checkpoints({ role }) {
  const found = useData((signal) => api.get("checkpoints", {}, { signal }), []);
  const again = useGathered(found.reload);
  useEvents((event) => event.kind === "epoch" && again());
  const at = (row, more = "") => `checkpoints/${encodeURIComponent(row.name)}${more}`;
  const run = (work) => async () => {
    const done = await work();
    found.reload();
    return done;
  };
  const columns = [
    { key: "name", title: "Name", sort: true, cell: (row) => html`<b>${row.name}</b>` },
    { key: "epoch", title: "Epoch", sort: true, end: true, cell: (row) => html`<a class="number" href=${link("epochs", row.epoch)}>${row.epoch}</a>` },
    { key: "views", title: "Views", sort: true, end: true, cell: (row) => html`<span class="number">${row.views}</span>` },
    { key: "created_at", title: "Made", sort: true, down: true, cell: (row) => html`<${Ago} at=${row.created_at} />` },
    {
      key: "do", title: html`<span class="hidden">Actions</span>`, end: true, cell: (row) => html`<span class="row-actions">
        <${Action} role=${role} kind="danger" title=${`Bring all views back to ${row.name}?`} yes="Bring back" run=${run(() => api.post(at(row, "/restore")))} said=${(done) => `All views are as they were at ${row.name}; this is epoch ${done.epoch}.`}
          text=${html`<p>All views, their rows and what they have read go back to epoch ${row.epoch}, in one step. Tables stay as they are: views that refresh by themselves follow them again.</p><p>Views that were made since then are gone.</p>`}>Restore<//>
        <${Action} role=${role} kind="quiet" icon="close" label=${`Drop ${row.name}`} title=${`Drop checkpoint ${row.name}?`} yes="Drop" run=${run(() => api.del(at(row)))} said=${`Checkpoint ${row.name} is dropped.`}
          text=${html`<p>Its epoch is no longer kept for longer than others, and cannot be gone back to.</p>`} /></span>`,
    },
  ];
  return html`<${Make} role=${role} after=${found.reload} /><${Loaded} found=${found}>${(rows) => html`<section class="card"><${Table} label="Checkpoints" columns=${columns} rows=${rows} empty="No checkpoints. One names the newest epoch, so that it is kept and can be gone back to." /></section>`}<//>`;
}

function Make({ role, after }) {
  const [open, setOpen] = useState(false);
  const [name, setName] = useState("");
  const allowed = may(role, "admin");
  const make = async () => {
    const made = await api.post("checkpoints", { name: name.trim() });
    toast(`Checkpoint ${made.name} names epoch ${made.epoch}.`);
    setName("");
    after();
  };
  return html`<p><${Button} icon="plus" disabled=${!allowed} title=${allowed ? undefined : `This takes the role admin. Yours is ${role}.`} onClick=${() => setOpen(true)}>New checkpoint<//></p>
    ${open && html`<${Confirm} title="New checkpoint" yes="Make it" onYes=${make} onClose=${() => setOpen(false)} disabled=${!name.trim()}>
      <p>It names the newest epoch. The files of that epoch are kept until the checkpoint is dropped, which takes room.</p>
      <${Field} label="Name">${(id) => html`<input id=${id} value=${name} onInput=${(event) => setName(event.target.value)} autofocus spellcheck="false" autocomplete="off" placeholder="before_import" />`}<//><//>`}`;
}

// -- watermarks -------------------------------------------------------------------------------------------------------

function Watermarks({ role }) {
  const found = useData((signal) => api.get("watermarks", {}, { signal }), []);
  const again = useGathered(found.reload);
  useEvents((event) => event.kind === "epoch" && again());
  const [moved, setMoved] = useState(null);
  const columns = [
    { key: "name", title: "Name", sort: true, cell: (row) => (row.kind === "view" ? html`<a href=${link("view", row.name)}>${row.name}</a>` : row.name) },
    { key: "kind", title: "Kind", sort: true, cell: (row) => html`<${Badge}>${row.kind}<//>` },
    { key: "definition", title: "Definition", wide: true, cell: (row) => (row.definition ? html`<code>${row.definition}</code>` : html`<span class="dim">from what it reads</span>`) },
    { key: "watermark", title: "No row is expected before", sort: true, cell: (row) => (row.watermark ? html`<${Moment} at=${row.watermark} />` : html`<span class="dim">not known yet</span>`) },
    { key: "advance", title: html`<span class="hidden">Advance</span>`, end: true, cell: (row) => row.kind === "table" && html`<${Button} disabled=${!may(role, "admin")} title=${may(role, "admin") ? undefined : `This takes the role admin. Yours is ${role}.`} label=${`Advance ${row.name}`} onClick=${() => setMoved(row)}>Advance<//>` },
  ];
  return html`<${Loaded} found=${found}>${(rows) => {
    const known = rows.filter((row) => row.definition || row.watermark);
    return html`<section class="card">${known.length ? html`<${Table} label="Watermarks" columns=${columns} rows=${known} />` : html`<${Empty} title="No watermarks" icon="epochs"><p>A table has one if it says how late its rows may come:</p><pre class="mono">ALTER TABLE trades SET WATERMARK FOR at AS at - INTERVAL 10 SECONDS</pre><//>`}</section>
      ${moved && html`<${Advance} row=${moved} onClose=${() => setMoved(null)} after=${found.reload} />`}`;
  }}<//>`;
}

function Advance({ row, onClose, after }) {
  const [moment, setMoment] = useState((row.watermark ?? new Date().toISOString()).replace("T", " ").replace(/(\.\d+)?([+-]\d\d:?\d\d|Z)$/, ""));
  const right = /^\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d(\.\d+)?)?)?$/.test(moment.trim());
  const run = async () => {
    const name = row.name.split(".").map((part) => `\`${part.replaceAll("`", "``")}\``).join(".");
    const done = await api.command(`ALTER TABLE ${name} ADVANCE WATERMARK TO TIMESTAMP '${moment.trim()}'`);
    toast(done.result[0].message);
    after();
  };
  return html`<${Confirm} title=${`Advance the watermark of ${row.name}`} yes="Advance" onYes=${run} onClose=${onClose} disabled=${!right}>
    <p>It says that no row before this moment is expected any more, though none after it has come. What comes all the same is late. It never moves back.</p>
    <${Field} label="Moment (UTC)" hint="2026-01-31 12:00:00">${(id) => html`<input id=${id} value=${moment} onInput=${(event) => setMoment(event.target.value)} autofocus spellcheck="false" autocomplete="off" />`}<//>
  <//>`;
}
