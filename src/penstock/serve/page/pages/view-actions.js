// What can be done with a view: each asks before it costs, and needs its role.

import { api } from "../api.js";
import { Action, Button, Confirm, Field, html, may, plural, toast, useState } from "../ui.js";

const at = (view) => `views/${encodeURIComponent(view.name)}`;
const moved = (report) =>
  report.views
    .filter((view) => view.action !== "NO_DATA")
    .map((view) => `${view.name}: ${view.action}, +${view.rows_inserted} −${view.rows_deleted}`)
    .join("; ") || "Nothing was new.";

/** Buttons: refresh, full refresh, suspend or resume, and, unless `small`, alter. `after()` when something was done. */
export function ViewActions({ view, role, small, after = () => {} }) {
  const run = (work) => async () => {
    const done = await work();
    after();
    return done;
  };
  const sources = view.reads.length ? view.reads.join(", ") : "nothing";
  const last = view.last_seconds ? ` Its last refresh took ${view.last_seconds.toFixed(2)} s.` : "";
  return html`
    <${Action} icon="refresh" needs="refresh" role=${role} label=${small ? "Refresh" : undefined} title=${`Refresh ${view.name}?`} yes="Refresh" run=${run(() => api.post(`${at(view)}/refresh`, {}))} said=${moved}
      text=${html`<p>It takes in what is new in ${sources}; what it reads is refreshed first.</p><p class="dim">${view.incremental ? "It is maintained incrementally: the work is in proportion to what changed." : "It cannot be maintained incrementally: all of it is computed anew if anything changed."}${last}</p>`}>${!small && "Refresh"}<//>
    <${Action} icon="full" needs="refresh" role=${role} label=${small ? "Full refresh" : undefined} title=${`Compute all of ${view.name} anew?`} yes="Compute anew" run=${run(() => api.post(`${at(view)}/refresh`, { full: true }))} said=${moved}
      text=${html`<p>All its rows are computed from ${sources}, whatever has changed. This can take long, and starts Spark if there is much to do.</p><p class="dim">Its readers see what differs as a change.</p>`}>${!small && "Full refresh"}<//>
    ${view.state === "SUSPENDED"
      ? html`<${Action} icon="play" needs="refresh" role=${role} label=${small ? "Resume" : undefined} title=${`Resume ${view.name}?`} yes="Resume" run=${run(() => api.post(`${at(view)}/resume`, {}))} said=${`${view.name} refreshes by itself again.`}
          text=${html`<p>It refreshes by itself again (${view.refresh}), and takes in what it missed.</p>`}>${!small && "Resume"}<//>`
      : html`<${Action} icon="pause" needs="refresh" role=${role} label=${small ? "Suspend" : undefined} title=${`Suspend ${view.name}?`} yes="Suspend" run=${run(() => api.post(`${at(view)}/suspend`, {}))} said=${`${view.name} is suspended.`}
          text=${html`<p>It stays as it is and grows older until it is resumed. ${view.readers?.length ? `${view.readers.join(", ")} ${view.readers.length === 1 ? "reads" : "read"} it, and will be held back.` : "Nothing reads it."}</p>`}>${!small && "Suspend"}<//>`}
    ${!small && html`<${Alter} view=${view} role=${role} after=${after} />`}`;
}

const POLICIES = {
  AUTO: "chooses by cost, and records why",
  INCREMENTAL: "incremental, or recomputed with a reason if this time it cannot be",
  "INCREMENTAL STRICT": "incremental, or the refresh fails",
  FULL: "always recomputed",
};

function Alter({ view, role, after }) {
  const [open, setOpen] = useState(false);
  const allowed = may(role, "admin");
  return html`<${Button} icon="edit" disabled=${!allowed} title=${allowed ? undefined : `This takes the role admin. Yours is ${role}.`} onClick=${() => setOpen(true)}>Alter<//>
    ${open && html`<${AlterDialog} view=${view} onClose=${() => setOpen(false)} after=${after} />`}`;
}

function AlterDialog({ view, onClose, after }) {
  const own = view.target_lag_seconds && view.lag_from === view.name ? `${plural(view.target_lag_seconds, "second")}` : "";
  const [given, set] = useState({ refresh: view.refresh, policy: view.policy, target_lag: own });
  const put = (name) => (event) => set({ ...given, [name]: event.target.value });
  const changed = Object.fromEntries(Object.entries(given).filter(([name, value]) => value.trim() && value !== { refresh: view.refresh, policy: view.policy, target_lag: own }[name]));
  const save = async () => {
    await api.patch(at(view), changed);
    toast(`${view.name} is altered.`);
    after();
  };
  return html`<${Confirm} title=${`Alter ${view.name}`} yes="Alter" onYes=${save} onClose=${onClose} disabled=${!Object.keys(changed).length}>
    <${Field} label="Refresh: when" hint="MANUAL, ON COMMIT, IMMEDIATE, EVERY 5 MINUTES, CRON '0 6 * * *'">${(id) => html`<input id=${id} value=${given.refresh} onInput=${put("refresh")} spellcheck="false" aria-describedby=${`${id}h`} />`}<//>
    <${Field} label="Policy: how" hint=${POLICIES[given.policy]}>${(id) => html`<select id=${id} value=${given.policy} onChange=${put("policy")} aria-describedby=${`${id}h`}>${Object.keys(POLICIES).map((name) => html`<option key=${name}>${name}</option>`)}</select>`}<//>
    <${Field} label="Target lag: how old it may get" hint="5 minutes, 2 hours, DOWNSTREAM">${(id) => html`<input id=${id} value=${given.target_lag} onInput=${put("target_lag")} spellcheck="false" aria-describedby=${`${id}h`} />`}<//>
    <p class="dim">${Object.keys(changed).length ? `Changes ${Object.keys(changed).join(", ").replace("_", " ")}. It holds from the next refresh on; no rows are computed now.` : "Nothing is changed yet."}</p>
  <//>`;
}
