// A new materialized view, step by step: what, when, how. What will run is shown, and how it will be maintained, before
// anything is created.

import { api } from "../api.js";
import { Badge, Button, Dialog, Failure, Field, Icon, classes, go, html, link, toast, useRef, useState } from "../ui.js";
import { Editor } from "./editor.js";
import { Sql } from "./highlight.js";

const WHEN = [
  ["ON COMMIT", "After each commit", "soon after a table that it reads has changed"],
  ["IMMEDIATE", "At once", "inside the statement that writes what it reads"],
  ["EVERY", "Every so often", "however often the tables change"],
  ["CRON", "At certain times", "as cron has them, such as 0 6 * * *"],
  ["MANUAL", "When I say so", "only by REFRESH"],
];
const HOW = [
  ["AUTO", "Whichever is cheaper", "and the reason is recorded"],
  ["INCREMENTAL", "Incrementally", "the view is refused if its query has no incremental rule"],
  ["INCREMENTAL STRICT", "Never in full", "a refresh that could not be incremental fails"],
  ["FULL", "In full", "all rows anew, each time"],
];
const UNITS = ["SECONDS", "MINUTES", "HOURS", "DAYS"];

const PLAIN = /^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$/;
const named = (name) => (PLAIN.test(name) ? name : name.split(".").map((part) => `\`${part.replaceAll("`", "``")}\``).join("."));
const text = (value) => `'${value.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

/** The statement that the choices make. */
export function statementOf({ name, query, when, every, unit, cron, lag, lagUnit, how, comment }) {
  const refresh = when === "EVERY" ? `EVERY ${every} ${unit}` : when === "CRON" ? `CRON ${text(cron)}` : when;
  const clauses = [
    comment.trim() && `COMMENT ${text(comment.trim())}`,
    `REFRESH ${refresh}`,
    lag && `TARGET LAG ${text(`${lag} ${lagUnit.toLowerCase()}`)}`,
    how !== "AUTO" && `REFRESH POLICY ${how}`,
  ].filter(Boolean);
  return `CREATE MATERIALIZED VIEW ${named(name.trim() || "name")}\n${clauses.map((clause) => `  ${clause}`).join("\n")}\nAS\n${query.trim().replace(/;\s*$/, "")}`;
}

export function Wizard({ database, known, query: given, onClose, onCreated }) {
  const [made, setMade] = useState({ name: "", query: given, when: "ON COMMIT", every: "5", unit: "MINUTES", cron: "0 6 * * *", lag: "", lagUnit: "MINUTES", how: "AUTO", comment: "" });
  const [checked, setChecked] = useState(null);
  const [busy, setBusy] = useState("");
  const [problem, setProblem] = useState(null);
  const verdict = useRef();
  const statement = statementOf(made);
  const current = checked?.statement === statement ? checked.told : null;
  const put = (field) => (event) => setMade({ ...made, [field]: typeof event === "string" ? event : event.target.value });
  const doing = async (what, work) => {
    setBusy(what);
    setProblem(null);
    try {
      await work();
    } catch (raised) {
      setProblem(raised);
    }
    setBusy("");
    verdict.current?.scrollIntoView({ block: "nearest" });
  };
  const check = () => doing("check", async () => setChecked({ statement, told: await api.post(`explain/${encodeURIComponent(database)}`, { command: statement }) }));
  const create = () =>
    doing("create", async () => {
      await api.command(statement);
      toast(`View ${made.name} is created and filled.`);
      onCreated(statement);
      go("view", made.name.trim());
    });
  const ready = made.name.trim() && made.query.trim();
  const submit = (event) => {
    event.preventDefault();
    if (busy || !ready) return;
    if (current) create();
    else check();
  };
  return html`<${Dialog} title="New materialized view" wide class="wizard" onClose=${() => busy || onClose()}>
    <form onSubmit=${submit}>
      <${Field} label="Name">${(id) => html`<input id=${id} value=${made.name} onInput=${put("name")} required autofocus autocomplete="off" spellcheck="false" placeholder="totals" />`}<//>
      <div class="field"><span class="field-name">Query</span><${Editor} value=${made.query} onInput=${put("query")} onRun=${check} known=${known} label="Query of the view" lines=${5} placeholder="SELECT region, SUM(amount) AS total FROM orders GROUP BY region" /></div>
      <div class="wizard-choices">
        <fieldset><legend>When it is refreshed</legend>${WHEN.map((one) => html`<${Option} key=${one[0]} name="when" one=${one} value=${made.when} set=${put("when")} />`)}
          ${made.when === "EVERY" && html`<div class="wizard-more"><input type="number" min="1" aria-label="Every" value=${made.every} onInput=${put("every")} /><${Units} label="Unit" value=${made.unit} set=${put("unit")} /></div>`}
          ${made.when === "CRON" && html`<div class="wizard-more"><input type="text" class="mono" aria-label="Times as cron has them" value=${made.cron} onInput=${put("cron")} /></div>`}</fieldset>
        <fieldset><legend>How it is refreshed</legend>${HOW.map((one) => html`<${Option} key=${one[0]} name="how" one=${one} value=${made.how} set=${put("how")} />`)}</fieldset>
      </div>
      <div class="wizard-line">
        <div class="field"><label for="wizard-lag">May be at most this old <span class="dim">(target lag; may be left out)</span></label>
          <div class="wizard-more"><input id="wizard-lag" type="number" min="1" value=${made.lag} onInput=${put("lag")} placeholder="–" /><${Units} label="Unit of the target lag" value=${made.lagUnit} set=${put("lagUnit")} /></div></div>
        <${Field} label="Comment">${(id) => html`<input id=${id} value=${made.comment} onInput=${put("comment")} autocomplete="off" />`}<//>
      </div>
      <h3>What will run</h3>
      <${Sql} text=${statement} label="The statement that will run" />
      <div ref=${verdict} role="status">${problem ? html`<${Failure} problem=${problem} />` : current ? html`<${Verdict} told=${current} />` : html`<p class="hint wizard-hint">${busy === "check" ? "Asking how it would be maintained. The first time, Spark starts for it." : ready ? "Check shows whether and how it will be incremental. Nothing is created by it." : "Give it a name and a query."}</p>`}</div>
      <div class="dialog-ends">
        <${Button} onClick=${onClose} disabled=${Boolean(busy)}>Cancel<//>
        <${Button} icon="search" onClick=${check} busy=${busy === "check"} disabled=${!ready || Boolean(busy)}>Check<//>
        <${Button} type="submit" kind="main" icon="plus" busy=${busy === "create"} disabled=${!current || Boolean(busy)} title=${current ? undefined : "Check it first"}>Create<//>
      </div>
    </form><//>`;
}

const Option = ({ name, one: [key, title, hint], value, set }) => html`<label class="wizard-option"><input type="radio" name=${name} checked=${value === key} onChange=${() => set(key)} /><span>${title} <span class="dim">${hint}</span></span></label>`;

const Units = ({ label, value, set }) => html`<select aria-label=${label} value=${value} onChange=${set}>${UNITS.map((unit) => html`<option key=${unit} value=${unit}>${unit.toLowerCase()}</option>`)}</select>`;

/** Whether it will be incremental, and by what; what could be done about it if not. */
export function Verdict({ told }) {
  return html`<div class=${classes("verdict", told.incremental ? "good" : "near")}>
    <p><${Icon} name=${told.incremental ? "check" : "warn"} /> <b>${told.incremental ? "It will be incremental." : "It will be recomputed in full at every change."}</b>
      ${!told.incremental && html` <${Badge} tone="near">${told.reason_code}<//> ${told.reason}`}</p>
    <dl class="facts">${told.constructs.map(([construct, how]) => html`<dt key=${construct} class="mono">${construct}</dt><dd>${how}</dd>`)}</dl>
    ${told.moves && html`<p class="dim">${told.moves}</p>`}
    ${told.advice.map((sentence) => html`<p key=${sentence}>${sentence}</p>`)}
    <p class="dim">${told.nodes.filter((node) => node.hidden).length ? `It keeps ${told.nodes.length} tables: its own, and ${told.nodes.length - 1} in between.` : "It keeps one table, its own."}</p></div>`;
}
