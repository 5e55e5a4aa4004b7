// The console: statements are written, run one after the other, and looked at. What was run is remembered by this browser.

import { api, Problem } from "../api.js";
import { Ago, Badge, Button, Dialog, Empty, Failure, Icon, Tabs, classes, duration, html, may, useData, useEffect, useEvents, useGathered, useKept, useMemo, useRef, useState } from "../ui.js";
import { names } from "../sql/complete.js";
import { Editor } from "../sql/editor.js";
import { Sql, statements } from "../sql/highlight.js";
import { placeOf } from "../sql/place.js";
import { Result } from "../sql/result.js";
import { Wizard } from "../sql/wizard.js";

export const title = "SQL";
export const styles = ["sql/sql.css", "vendor/uplot.css"];

const LIMITS = [100, 1_000, 10_000];
const REMEMBERED = 200;

export default function Console({ params, database, role }) {
  const [text, setText] = useKept(`sql.text.${database}`, "");
  const [limit, setLimit] = useKept("sql.limit", 1_000);
  const [history, setHistory] = useKept(`sql.history.${database}`, []);
  const [run, setRun] = useState(null);
  const [shown, setShown] = useState("0");
  const [dialog, setDialog] = useState(null);
  const handle = useRef();
  const schema = useData((signal) => api.get(`schema/${encodeURIComponent(database)}`, {}, { signal }), [database]);
  const again = useGathered(schema.reload, 1_000);
  useEvents((event) => event.kind === "epoch" && again());
  const known = useMemo(() => (schema.data ? names(schema.data) : undefined), [schema.data]);
  useEffect(() => params.text && setText(params.text), [params.text]);
  useEffect(() => () => run?.stop.abort(), [run]);

  const remember = (entry) => setHistory((was) => [entry, ...was.filter((one) => one.text !== entry.text)].slice(0, REMEMBERED));
  const write = (next) => {
    setText(next);
    if (run && !run.busy && run.wrong) setRun({ ...run, wrong: null });
  };

  /** Run statements one after the other; the first that fails ends it. */
  const runAll = async (list) => {
    if (!list.length || run?.busy) return;
    const mine = { stop: new AbortController(), outcomes: [], busy: true, at: 0, of: list.length, since: Date.now(), wrong: null };
    const tell = (more) => setRun((was) => (was?.stop === mine.stop || more.first ? Object.assign(mine, more) && { ...mine } : was));
    setRun({ ...mine });
    setShown("0");
    for (const [at, one] of list.entries()) {
      const began = performance.now();
      const seconds = () => (performance.now() - began) / 1000;
      try {
        const ask = may(role, "refresh") ? api.command : api.query;
        const answer = await ask(one.text, null, { limit, signal: mine.stop.signal });
        mine.outcomes = [...mine.outcomes, { text: one.text, answer, seconds: seconds() }];
        remember({ text: one.text, at: Date.now(), seconds: seconds(), rows: answer.returned, ok: true });
        tell({ at: at + 1 });
        setShown(String(mine.outcomes.length - 1));
      } catch (problem) {
        const stopped = problem.name === "AbortError";
        const told = stopped ? new Problem(0, { detail: "You stopped waiting.", help: "The server finishes what it has begun; what it was is in the history of the view, if it was a refresh." }) : problem;
        mine.outcomes = [...mine.outcomes, { text: one.text, problem: told, seconds: seconds() }];
        if (!stopped) remember({ text: one.text, at: Date.now(), seconds: seconds(), ok: false });
        tell({ busy: false, wrong: stopped || one.start === undefined ? null : placeOf(told, one.text, one.start) });
        setShown(String(mine.outcomes.length - 1));
        return;
      }
    }
    tell({ busy: false });
  };

  /** What is selected, or all. */
  const chosen = () => {
    const { start, end } = handle.current.selection();
    if (end <= start) return statements(text);
    return statements(text.slice(start, end)).map((one) => ({ ...one, start: one.start + start, end: one.end + start }));
  };
  /** The statement that the cursor is in. */
  const here = () => {
    const at = handle.current.selection().start;
    const all = statements(text);
    return all.find((one) => at <= one.end) ?? all.at(-1);
  };
  const explain = () => {
    const one = here();
    if (!one) return;
    const done = /^EXPLAIN\b/i.test(one.text);
    runAll([done ? one : { text: `EXPLAIN ${one.text}` }]);
  };
  const count = statements(text).length;

  return html`<div class="page console">
    <div class="page-head"><h1>SQL</h1><span class="dim">Ctrl-Enter runs what is selected, or all. Ctrl-Space suggests.</span>
      <span class="ends"><${Button} icon="epochs" onClick=${() => setDialog("history")}>History<//><${Button} icon="plus" disabled=${!may(role, "admin")} title=${may(role, "admin") ? undefined : `This takes the role admin. Yours is ${role}.`} onClick=${() => setDialog("wizard")}>New view<//></span></div>
    <section class="card console-card" aria-label="Statements">
      <${Editor} value=${text} onInput=${write} onRun=${() => runAll(chosen())} known=${known} wrong=${run?.wrong} handle=${handle} lines=${9} label="SQL statements" describedBy="console-said" placeholder="SELECT .. FROM .." />
      <div class="console-bar">
        ${run?.busy ? html`<${Button} icon="close" onClick=${() => run.stop.abort()}>Cancel<//>` : html`<${Button} kind="main" icon="play" disabled=${!count} onClick=${() => runAll(chosen())}>Run<//>`}
        <${Button} disabled=${!count || run?.busy} onClick=${explain} title="How the statement at the cursor would be done">Explain<//>
        <label class="console-limit">Rows at most <select value=${limit} onChange=${(event) => setLimit(Number(event.target.value))}>${LIMITS.map((one) => html`<option key=${one} value=${one}>${one.toLocaleString("en-US")}</option>`)}</select></label>
        <span id="console-said" class="console-said dim" role="status">${run?.busy ? html`<span class="spin" aria-hidden="true" /> statement ${Math.min(run.at + 1, run.of)} of ${run.of}` : !may(role, "refresh") ? "Your role may run what only reads." : ""}</span>
        <${Button} kind="quiet" disabled=${!text || run?.busy} onClick=${() => write("")}>Clear<//>
      </div>
    </section>
    <${Outcomes} run=${run} shown=${shown} onShow=${setShown} onPlace=${() => handle.current.select(...run.wrong)} />
    ${dialog === "history" && html`<${History} list=${history} onClose=${() => setDialog(null)} onForget=${() => setHistory([])} onTake=${(one) => (write(text.trim() ? `${text.trimEnd().replace(/;?$/, ";")}\n\n${one}` : one), setDialog(null))} />`}
    ${dialog === "wizard" && html`<${Wizard} database=${database} known=${known} query=${plainQuery(text)} onClose=${() => setDialog(null)} onCreated=${(statement) => remember({ text: statement, at: Date.now(), ok: true })} />`}
  </div>`;
}

/** The text, if it is one query: what a new view may begin with. */
function plainQuery(text) {
  const all = statements(text);
  return all.length === 1 && /^\s*(SELECT|WITH)\b/i.test(all[0].text) ? all[0].text : "";
}

function Outcomes({ run, shown, onShow, onPlace }) {
  if (!run) return html`<${Empty} title="No results yet" icon="sql"><p>Write a statement, and run it. Several are run one after the other, with semicolons between them.</p><//>`;
  const { outcomes } = run;
  if (!outcomes.length) return html`<p class="nothing" role="status">${run.busy ? "Waiting for the server…" : ""}</p>`;
  const at = Math.min(Number(shown), outcomes.length - 1);
  const one = html`<${Outcome} key=${`${run.since} ${at}`} outcome=${outcomes[at]} wrong=${run.wrong} onPlace=${onPlace} />`;
  if (outcomes.length === 1) return one;
  const tabs = outcomes.map((outcome, place) => ({ key: String(place), title: html`<span class=${classes("outcome-tab", outcome.problem && "bad")}>${outcome.problem && html`<${Icon} name="warn" size=${13} />`} ${place + 1} ${brief(outcome.text)}</span>` }));
  return html`<${Tabs} label="Results" tabs=${tabs} value=${String(at)} onChange=${onShow}>${one}<//>`;
}

const brief = (text) => text.replace(/\s+/g, " ").slice(0, 26);

function Outcome({ outcome, wrong, onPlace }) {
  return html`<section class="card outcome" aria-label="Result">
    <header><code class="outcome-text" title=${outcome.text}>${outcome.text.replace(/\s+/g, " ").slice(0, 120)}</code><span class="ends dim number">${duration(outcome.seconds)}</span></header>
    ${outcome.problem
      ? html`<div class="inside"><${Failure} problem=${outcome.problem} />${wrong && html`<${Button} icon="edit" onClick=${onPlace}>Show the place<//>`}</div>`
      : html`<${Result} outcome=${outcome} />`}
  </section>`;
}

function History({ list, onClose, onTake, onForget }) {
  const [sought, setSought] = useState("");
  const found = list.filter((one) => one.text.toLowerCase().includes(sought.toLowerCase()));
  return html`<${Dialog} title="What was run in this browser" wide onClose=${onClose}>
    <div class="history-find"><input type="search" aria-label="Search the history" placeholder="Search" value=${sought} onInput=${(event) => setSought(event.target.value)} autofocus /></div>
    ${found.length ? html`<ul class="history">${found.slice(0, 60).map((one) => html`<li key=${one.text}><div class="history-head"><${Ago} at=${new Date(one.at).toISOString()} />${one.ok ? html`<span class="dim">${one.rows !== undefined ? `${one.rows} rows` : ""} ${one.seconds !== undefined ? duration(one.seconds) : ""}</span>` : html`<${Badge} tone="bad">failed<//>`}<${Button} kind="quiet" onClick=${() => onTake(one.text)} label=${`Use ${brief(one.text)}`}>Use<//></div><${Sql} text=${one.text.slice(0, 2_000)} label="Statement" /></li>`)}</ul>` : html`<p class="nothing">${list.length ? "Nothing fits." : "Nothing yet."}</p>`}
    <div class="dialog-ends"><${Button} kind="danger" disabled=${!list.length} onClick=${onForget}>Forget all<//><${Button} kind="main" onClick=${onClose}>Close<//></div><//>`;
}
