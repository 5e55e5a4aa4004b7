// What somebody should know of: what goes on and what is over, why, and what can be done about it here.

import { api } from "../api.js";
import { Ago, Badge, Busy, Empty, Failure, Icon, Table, Tabs, html, link, setParams, useData, useEvents, useGathered } from "../ui.js";
import { ViewActions } from "./view-actions.js";

export const title = "Alerts";
export const styles = ["pages/work.css"];

const WORDS = {
  state_mismatch: "Stored rows did not fit",
  lag_exceeded: "Too old",
  auto_suspended: "Suspended after errors",
  reinitialize_needed: "Filled anew",
  change_backlog: "Many commits wait",
  upstream_failed: "Waits for a failed view",
  fell_back_to_full: "Recomputed",
};
const TONES = { auto_suspended: "bad", state_mismatch: "bad", lag_exceeded: "bad", upstream_failed: "bad", change_backlog: "near", reinitialize_needed: "near", fell_back_to_full: "" };

export default function Alerts({ params, role }) {
  const found = useData((signal) => api.get("alerts", { limit: 1_000 }, { signal }), []);
  const views = useData((signal) => api.get("views", {}, { signal }), []);
  const again = useGathered(() => (found.reload(), views.reload()));
  useEvents((event) => ["alert", "gap", "epoch", "failure"].includes(event.kind) && again());
  if (found.problem) return html`<div class="page"><${Failure} problem=${found.problem} again=${found.reload} /></div>`;
  if (!found.data) return html`<${Busy} />`;
  const open = found.data.result.filter((alert) => !alert.cleared_at);
  const over = found.data.result.filter((alert) => alert.cleared_at);
  const known = new Map((views.data?.result ?? []).map((view) => [view.name, view]));
  const tab = params.tab === "over" ? "over" : "open";
  return html`<div class="page"><div class="page-head"><h1>Alerts</h1></div>
    <${Tabs} label="Which alerts" tabs=${[{ key: "open", title: "Going on", count: open.length }, { key: "over", title: "Over", count: over.length }]} value=${tab} onChange=${(key) => setParams({ tab: key })}>
      ${tab === "over" ? html`<section class="card"><${Table} label="Alerts that are over" columns=${PAST} rows=${over} id=${(one) => `${one.kind} ${one.view} ${one.raised_at}`} empty="Nothing was raised and cleared so far." /></section>` : open.length ? html`<ul class="alerts">${open.map((alert) => html`<${One} key=${`${alert.kind} ${alert.view} ${alert.raised_at}`} alert=${alert} view=${known.get(alert.view)} role=${role} after=${again} />`)}</ul>` : html`<${Empty} title="Nothing goes on" icon="check"><p>Every view is as fresh as it should be, and none fails.</p><//>`}
    <//></div>`;
}

function One({ alert, view, role, after }) {
  return html`<li class=${`card alert ${TONES[alert.kind] ?? ""}`}>
    <div class="alert-head"><${Icon} name="warn" /><${Badge} tone=${TONES[alert.kind]}>${WORDS[alert.kind] ?? alert.kind}<//><a class="alert-view" href=${link("view", alert.view)}>${alert.view}</a><span class="dim">since <${Ago} at=${alert.raised_at} />, epoch <a href=${link("epochs", alert.epoch)}>${alert.epoch}</a></span>
      <span class="alert-ends">${view && html`<${ViewActions} view=${view} role=${role} small after=${after} />`}</span></div>
    <p class="alert-message">${alert.message}</p>
    ${alert.suggestion && html`<p class="dim">${alert.suggestion}</p>`}</li>`;
}

const PAST = [
  { key: "kind", title: "What", sort: true, cell: (row) => html`<${Badge} tone=${TONES[row.kind]}>${WORDS[row.kind] ?? row.kind}<//>` },
  { key: "view", title: "View", sort: true, cell: (row) => html`<a href=${link("view", row.view)}>${row.view}</a>` },
  { key: "message", title: "Message", wide: true, cell: (row) => row.message },
  { key: "raised_at", title: "Raised", sort: true, down: true, cell: (row) => html`<${Ago} at=${row.raised_at} />` },
  { key: "cleared_at", title: "Cleared", sort: true, down: true, cell: (row) => html`<${Ago} at=${row.cleared_at} />` },
];
