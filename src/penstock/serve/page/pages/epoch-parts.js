// Small parts that tell of epochs and refreshes.

import { Badge, compact, count, duration, html } from "../ui.js";

export const PHASES = ["planning", "reading", "computing", "writing", "committing"];

/** Seconds from the begin of an epoch until it was published. */
export const wall = (epoch) => (epoch.begun_at ? (Date.parse(epoch.published_at) - Date.parse(epoch.begun_at)) / 1000 : null);

const TONES = { INCREMENTAL: "good", FULL: "near", REINITIALIZE: "near", SKIP: "", NO_DATA: "" };

/** What was done, and the reason if that is another than that something changed. */
export const Actions = ({ row }) => html`<${Badge} tone=${row.status === "FAILED" ? "bad" : TONES[row.action]}>${row.status === "FAILED" ? "FAILED" : row.action}<//>
  ${row.reason && row.reason !== "CHANGED" && html` <span class="dim reason">${row.reason}</span>`}`;

export const Rows = ({ row }) => html`<span class="number" title=${`${count(row.rows_inserted)} came, ${count(row.rows_deleted)} went`}><span class="came">+${compact(row.rows_inserted)}</span> <span class="went">−${compact(row.rows_deleted)}</span></span>`;

/** Seconds by phase as one bar. */
export function Phases({ phases, seconds }) {
  const known = PHASES.filter((phase) => phases?.[phase] > 0);
  const whole = known.reduce((sum, phase) => sum + phases[phase], 0);
  if (!whole) return html`<span class="dim">–</span>`;
  return html`<span class="phases" title=${known.map((phase) => `${phase} ${duration(phases[phase])}`).join("\n")}>
    <span class="phases-bar" aria-hidden="true">${known.map((phase) => html`<i key=${phase} class=${`phase ${phase}`} style=${{ width: `${(100 * phases[phase]) / whole}%` }} />`)}</span><span class="number">${duration(seconds)}</span></span>`;
}
