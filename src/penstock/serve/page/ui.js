// What the pages are made of: small components, and hooks on the server's data. A page imports all of it from here.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState, useCallback } from "./vendor/preact-htm.js";
import { api, identity } from "./api.js";
import { age, count, duration, exactly, lagTone, moment } from "./format.js";

export { h, html, render, useCallback, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "./vendor/preact-htm.js";
export * from "./format.js";

export const classes = (...names) => names.filter(Boolean).join(" ");

let last = 0;
/** An id for this component, for labels. */
export const useId = () => useState(() => `u${++last}`)[0];

// -- where we are -----------------------------------------------------------------------------------------------------

let inLinks = {};
/** Parameters that every link carries: the database, where there are several. */
export const carry = (params) => (inLinks = params);

/** The hash of a page: link("view", "totals"), link("view", "totals", {tab: "rows"}). */
export function link(...parts) {
  const params = typeof parts.at(-1) === "object" ? parts.pop() : {};
  const path = parts.map((part) => encodeURIComponent(part)).join("/");
  const given = Object.entries({ ...inLinks, ...params }).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return `#/${path}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}

export const go = (...parts) => (location.hash = link(...parts));

/** Put other parameters into the address of this page, without a step of its own in the history. */
export function setParams(params) {
  const [path, query] = location.hash.slice(2).split("?");
  const merged = { ...Object.fromEntries(new URLSearchParams(query || "")), ...params };
  history.replaceState(null, "", link(...path.split("/").map(decodeURIComponent), merged));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

// -- hooks ------------------------------------------------------------------------------------------------------------

/** The value of a store, drawn again when it changes. */
export function useStore(store) {
  const [value, set] = useState(store.value);
  useEffect(() => {
    set(store.value);
    return store.watch(set);
  }, [store]);
  return value;
}

/**
 * What `load(signal)` gives: {data, problem, busy, reload, at}. It is asked again when `deps` change; what was there
 * stays until the new is there, unless `deps` are those of something else.
 */
export function useData(load, deps) {
  const [state, set] = useState({ data: null, problem: null, busy: true, at: 0, deps });
  const [turn, again] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    set((was) => ({ ...(was.deps === deps || same(was.deps, deps) ? was : { data: null, at: 0 }), busy: true, problem: null, deps }));
    load(stop.signal).then(
      (data) => stop.signal.aborted || set({ data, problem: null, busy: false, at: Date.now(), deps }),
      (problem) => stop.signal.aborted || set((was) => ({ ...was, problem, busy: false })),
    );
    return () => stop.abort();
  }, [...deps, turn]);
  const reload = useCallback(() => again((value) => value + 1), []);
  return { ...state, reload };
}

const same = (a, b) => a.length === b.length && a.every((value, place) => Object.is(value, b[place]));

/** Hear of what happens in the database as long as the component is there. */
export function useEvents(onEvent) {
  const latest = useRef(onEvent);
  latest.current = onEvent;
  useEffect(() => {
    const stop = new AbortController();
    const hear = (event) => latest.current(event);
    api.events(hear, { signal: stop.signal });
    return () => stop.abort();
  }, []);
}

/** Many calls in a moment become one, `wait` milliseconds after the first. */
export function useGathered(work, wait = 250) {
  const latest = useRef(work);
  latest.current = work;
  const timer = useRef(null);
  useEffect(() => () => clearTimeout(timer.current), []);
  return useCallback(() => {
    timer.current ??= setTimeout(() => {
      timer.current = null;
      latest.current();
    }, wait);
  }, [wait]);
}

const clock = { watchers: new Set(), timer: null };
/** The time, once a second, from one clock for all. */
export function useNow() {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    clock.watchers.add(set);
    clock.timer ??= setInterval(() => document.hidden || clock.watchers.forEach((watch) => watch(Date.now())), 1000);
    return () => {
      clock.watchers.delete(set);
      if (!clock.watchers.size) clock.timer = clearInterval(clock.timer) ?? null;
    };
  }, []);
  return now;
}

/** A value that this browser remembers. */
export function useKept(name, initial) {
  const key = `penstock.${name}`;
  const [value, set] = useState(() => {
    try {
      return JSON.parse(localStorage.getItem(key)) ?? initial;
    } catch {
      return initial;
    }
  });
  const keep = useCallback(
    (next) =>
      set((was) => {
        const made = typeof next === "function" ? next(was) : next;
        try {
          localStorage.setItem(key, JSON.stringify(made));
        } catch {
          // it is remembered as long as the page is open
        }
        return made;
      }),
    [key],
  );
  return [value, keep];
}

const ROLES = ["read", "refresh", "admin"];
/** Whether a role may do what takes another. */
export const may = (role, needed) => ROLES.indexOf(role) >= ROLES.indexOf(needed);
export const useRole = () => useStore(identity)?.role ?? "read";

// -- toasts -----------------------------------------------------------------------------------------------------------

export const toasts = { list: [], watchers: new Set() };

/** Say what was done, for some seconds. `kind`: "done", "problem", "news". */
export function toast(text, kind = "done") {
  const one = { id: ++last, text: String(text), kind };
  const put = (list) => {
    toasts.list = list;
    toasts.watchers.forEach((watch) => watch(list));
  };
  const drop = () => put(toasts.list.filter((other) => other !== one));
  one.drop = drop;
  put([...toasts.list.slice(-3), one]);
  setTimeout(drop, kind === "problem" ? 12_000 : 6_000);
}

// -- small parts ------------------------------------------------------------------------------------------------------

const PATHS = {
  graph: "M4 4h5v4H4zM15 10h5v4h-5zM4 16h5v4H4zM9 6h3v12H9M12 12h3",
  table: "M4 5h16v14H4zM4 10h16M4 14.500h16M10 10v9",
  view: "M4 6h16M4 12h16M4 18h10",
  model: "M5 4h9l5 5v11H5zM14 4v5h5M9 13h6M9 16h4",
  epochs: "M4 6h7M8 12h9M13 18h7",
  sql: "M5 7l5 5-5 5M12 18h7",
  models: "M5 4h9l5 5v11H5zM14 4v5h5M9 13h6M9 16h4",
  alerts: "M12 4a5 5 0 0 0-5 5v4l-2 3h14l-2-3V9a5 5 0 0 0-5-5zM10 19a2 2 0 0 0 4 0",
  settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 4.500v5M9 14.500v5",
  refresh: "M19 8a8 8 0 1 0 1 5M20 4v5h-5",
  full: "M19 8a8 8 0 1 0 1 5M20 4v5h-5M12 8v4l3 2",
  pause: "M9 6v12M15 6v12",
  play: "M8 5l11 7-11 7z",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  fit: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l4 4",
  close: "M6 6l12 12M18 6L6 18",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M19 5l-2 2M7 17l-2 2",
  moon: "M20 14.500A8.500 8.500 0 0 1 9.500 4a8.500 8.500 0 1 0 10.500 10.500z",
  auto: "M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18",
  key: "M14.500 4.500a5 5 0 1 0 3 8.900M13 12l-9 8M7 17l3 3M16 8h.01",
  edit: "M4 20l1-4L16 5l3 3L8 19z",
  more: "M6 12h.01M12 12h.01M18 12h.01",
  warn: "M12 4l9 16H3zM12 10v5M12 17.500v.01",
  bolt: "M13 3L5 14h6l-1 7 8-11h-6z",
  check: "M5 12.500l5 5L19 7",
  right: "M9 6l6 6-6 6",
  left: "M15 6l-6 6 6 6",
  down: "M6 9l6 6 6-6",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  out: "M10 4H5v16h5M15 8l4 4-4 4M19 12H9",
};

/** A picture beside a word; screen readers do not need it. */
export const Icon = ({ name, size = 16 }) => html`<svg class="icon" width=${size} height=${size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
  <path d=${PATHS[name] || PATHS.more} /></svg>`;

/** kind: "", "main", "danger", "quiet". */
export function Button({ kind = "", icon, busy, children, class: more, label, type = "button", disabled, ...rest }) {
  return html`<button type=${type} class=${classes("button", kind, !hasWords(children) && "square", more)} aria-label=${label}
    title=${rest.title ?? (hasWords(children) ? undefined : label)} disabled=${disabled || busy} aria-busy=${busy ? "true" : undefined} ...${rest}>
    ${busy ? html`<span class="spin" aria-hidden="true" />` : icon && html`<${Icon} name=${icon} />`}
    ${hasWords(children) && html`<span>${children}</span>`}
  </button>`;
}

const hasWords = (children) => (Array.isArray(children) ? children.some(hasWords) : children !== undefined && children !== null && children !== false && children !== "");

/** A dialog over the page. The browser keeps the focus in it, gives it back, and closes it on Escape. */
export function Dialog({ title, onClose, children, wide, class: more }) {
  const place = useRef();
  const id = useId();
  useLayoutEffect(() => {
    const dialog = place.current;
    const had = document.activeElement;
    dialog.showModal();
    return () => {
      dialog.close();
      if (had?.isConnected) had.focus();
    };
  }, []);
  const outside = (event) => event.target === place.current && onClose();
  const cancel = (event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog ref=${place} class=${classes("dialog", wide && "wide", more)} aria-labelledby=${id} onCancel=${cancel} onMouseDown=${outside}>
    <div class="dialog-box"><h2 id=${id}>${title}</h2>${children}</div>
  </dialog>`;
}

/**
 * Asks before something costs: what will happen (children), then `yes` or not. `onYes` may be async; while it runs the
 * dialog waits, and what goes wrong is shown in it. `onClose(done)` closes it.
 */
export function Confirm({ title, yes, kind = "main", onYes, onClose, children, disabled }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const run = async (event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await onYes();
      onClose(true);
    } catch (raised) {
      setProblem(raised);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${title} onClose=${() => busy || onClose(false)}>
    <form method="dialog" onSubmit=${run}>
      <div class="dialog-text">${children}</div>
      ${problem && html`<${Failure} problem=${problem} />`}
      <div class="dialog-ends">
        <${Button} onClick=${() => onClose(false)} disabled=${busy} autofocus=${kind === "danger"}>Cancel<//>
        <${Button} type="submit" kind=${kind} busy=${busy} disabled=${disabled}>${yes}<//>
      </div>
    </form>
  <//>`;
}

/**
 * A button that asks first. `needs` is the role it takes: without it, it is off and says so. `run` does it; `said(result)`
 * is the toast afterwards.
 */
export function Action({ children, icon, kind = "", title, yes, text, run, said, needs = "admin", role, disabled, why, label, class: more }) {
  const [open, setOpen] = useState(false);
  const allowed = may(role, needs);
  const reason = allowed ? (disabled ? why : undefined) : `This takes the role ${needs}. Yours is ${role}.`;
  const close = () => setOpen(false);
  const onYes = async () => {
    const result = await run();
    toast((typeof said === "function" ? said(result) : said) || "Done.");
  };
  return html`<${Button} icon=${icon} kind=${kind} class=${more} label=${label} title=${reason ?? label} disabled=${!allowed || disabled} onClick=${() => setOpen(true)}>${children}<//>
    ${open && html`<${Confirm} title=${title} yes=${yes} kind=${kind === "danger" ? "danger" : "main"} onYes=${onYes} onClose=${close}>${text}<//>`}`;
}

export const Empty = ({ title, children, icon = "view" }) => html`<div class="empty">
  <${Icon} name=${icon} size=${28} /><h2>${title}</h2>${children && html`<div>${children}</div>`}</div>`;

/** Something is under way. It shows only if that takes a moment. */
export const Busy = ({ label = "Loading" }) => html`<div class="busy" role="status"><span class="spin" aria-hidden="true" /> ${label}…</div>`;

/** What went wrong, and what to do next. */
export const Failure = ({ problem, again }) => html`<div class="failure" role="alert">
  <${Icon} name="warn" />
  <div>
    <p class="failure-detail">${problem.detail || problem.message}</p>
    ${problem.help && html`<p>${problem.help}</p>`}
    ${problem.views?.some((view) => view.error) &&
    html`<ul>${problem.views.filter((view) => view.error).map((view) => html`<li key=${view.view}><b>${view.view}</b>: ${view.error}</li>`)}</ul>`}
    ${again && html`<${Button} icon="refresh" onClick=${again}>Try again<//>`}
  </div></div>`;

/** tone: "", "good", "near", "bad", "calm", "odd". */
export const Badge = ({ tone = "", icon, title, children }) => html`<span class=${classes("badge", tone)} title=${title}>
  ${icon && html`<${Icon} name=${icon} size=${12} />`}${children}</span>`;

// -- values -----------------------------------------------------------------------------------------------------------

const TONES = { good: "good", near: "near", late: "bad", free: "", none: "" };

/** A lag that goes on ticking: `seconds` at the moment `at` (milliseconds), unless `still`. */
export function Lag({ seconds, target, at, still }) {
  const now = useNow();
  if (seconds === null || seconds === undefined) return html`<span class="dim">–</span>`;
  const lag = still ? seconds : seconds + Math.max(0, now - (at || now)) / 1000;
  const tone = lagTone(lag, target);
  const said = target === null || target === undefined ? "no target" : `${tone === "late" ? "over" : "within"} its target of ${age(target)}`;
  return html`<span class=${classes("lag", TONES[tone])} title=${said}>${age(lag)}${target ? html`<span class="dim"> / ${age(target)}</span>` : ""}</span>`;
}

/** How long ago something was. */
export function Ago({ at }) {
  const now = useNow();
  if (!at) return html`<span class="dim">never</span>`;
  const seconds = Math.max(0, (now - new Date(at).getTime()) / 1000);
  return html`<time datetime=${at} title=${exactly(at)}>${seconds < 1 ? "now" : `${age(seconds)} ago`}</time>`;
}

export const Moment = ({ at }) => (at ? html`<time datetime=${at} title=${exactly(at)}>${moment(at)}</time>` : html`<span class="dim">–</span>`);
export const Duration = ({ seconds }) => html`<span class="number">${duration(seconds)}</span>`;
export const Count = ({ value }) => html`<span class="number">${count(value)}</span>`;

/** A label, and what it is of. `children(id)` draws the input. */
export function Field({ label, hint, children, inline }) {
  const id = useId();
  return html`<div class=${classes("field", inline && "inline")}>
    <label for=${id}>${label}</label>${children(id)}${hint && html`<p class="hint" id=${`${id}h`}>${hint}</p>`}</div>`;
}

// -- tables and tabs --------------------------------------------------------------------------------------------------

/**
 * columns: {key, title, cell(row), sort(row) or true, end: numbers to the right, wide, hide: "phone"}. Headers sort; the
 * arrow keys go from row to row, and Enter opens one if there is `onOpen(row)`.
 */
export function Table({ columns, rows, id = (row) => row.name, label, initial = null, onOpen, chosen, empty = "Nothing here.", class: more }) {
  const [order, setOrder] = useState(initial);
  const [at, setAt] = useState(0);
  const body = useRef();
  const sorted = useMemo(() => inOrder(rows, columns, order), [rows, order]);
  const turn = (column) => setOrder(order?.key === column.key ? { key: column.key, down: !order.down } : { key: column.key, down: Boolean(column.down) });
  const move = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -sorted.length, End: sorted.length }[event.key];
    const row = event.target.closest("tr");
    if (event.target !== row) return;
    if (step) {
      event.preventDefault();
      const next = Math.max(0, Math.min(sorted.length - 1, Number(row.dataset.at) + step));
      setAt(next);
      body.current.children[next]?.focus();
    } else if (event.key === "Enter") onOpen(sorted[Number(row.dataset.at)]);
  };
  const opens = (event, row) => event.target.closest("a, button, input") || String(getSelection()) || onOpen(row);
  const heading = (column) =>
    html`<th key=${column.key} scope="col" class=${cellClass(column)} aria-sort=${order?.key === column.key ? (order.down ? "descending" : "ascending") : undefined}>
      ${column.sort ? html`<button type="button" class="sorter" onClick=${() => turn(column)}>${column.title}<span class="arrow" aria-hidden="true">${order?.key === column.key ? (order.down ? "↓" : "↑") : ""}</span></button>` : column.title}
    </th>`;
  if (!rows.length) return html`<p class="nothing">${empty}</p>`;
  const reach = Math.min(at, sorted.length - 1);
  return html`<div class=${classes("table-wrap", more)} tabindex=${onOpen ? undefined : 0} role="region" aria-label=${label}>
    <table class=${classes("table", onOpen && "opens")} aria-label=${label}>
      <thead><tr>${columns.map(heading)}</tr></thead>
      <tbody ref=${body} onKeyDown=${onOpen && move}>
        ${sorted.map(
          (row, place) => html`<tr key=${id(row)} data-at=${place} class=${chosen !== undefined && chosen === id(row) ? "chosen" : undefined}
            tabindex=${onOpen ? (place === reach ? 0 : -1) : undefined} onFocus=${onOpen && (() => setAt(place))} onClick=${onOpen && ((event) => opens(event, row))}>
            ${columns.map((column) => html`<td key=${column.key} class=${cellClass(column)}>${column.cell ? column.cell(row) : row[column.key]}</td>`)}
          </tr>`,
        )}
      </tbody>
    </table></div>`;
}

const cellClass = (column) => classes(column.end && "end", column.wide && "wide", column.hide && `hide-${column.hide}`) || undefined;

function inOrder(rows, columns, order) {
  const column = order && columns.find((one) => one.key === order.key);
  if (!column) return rows;
  const value = typeof column.sort === "function" ? column.sort : (row) => row[column.key];
  const known = (one) => one !== null && one !== undefined && one !== "";
  const compare = (a, b) => {
    const [x, y] = [value(a), value(b)];
    if (!known(x) || !known(y)) return known(y) - known(x); // what is not known comes last either way
    const found = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
    return order.down ? -found : found;
  };
  return [...rows].sort(compare);
}

/** tabs: {key, title, count}. `children` is the chosen tab's panel; arrow keys go from tab to tab. */
export function Tabs({ tabs, value, onChange, label, children }) {
  const id = useId();
  const list = useRef();
  const move = (event) => {
    const at = tabs.findIndex((tab) => tab.key === value);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const to = (next + tabs.length) % tabs.length;
    onChange(tabs[to].key);
    list.current.children[to].focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} ref=${list} onKeyDown=${move}>
      ${tabs.map(
        (tab) => html`<button key=${tab.key} type="button" role="tab" id=${`${id}-${tab.key}`} aria-controls=${`${id}-panel`} aria-selected=${tab.key === value ? "true" : "false"}
          tabindex=${tab.key === value ? 0 : -1} onClick=${() => onChange(tab.key)}>${tab.title}${tab.count ? html` <span class="tab-count">${tab.count}</span>` : ""}</button>`,
      )}
    </div>
    <div class="panel" role="tabpanel" id=${`${id}-panel`} aria-labelledby=${`${id}-${value}`} tabindex="0">${children}</div>`;
}

/** A few values of which one holds: radio buttons that look like one control. options: {value, title, icon}. */
export function Choice({ label, options, value, onChange }) {
  const name = useId();
  return html`<div class="choice" role="radiogroup" aria-label=${label}>
    ${options.map(
      (one) => html`<label key=${one.value} title=${one.hint}><input type="radio" name=${name} checked=${one.value === value} onChange=${() => onChange(one.value)} />
        <span>${one.icon && html`<${Icon} name=${one.icon} size=${14} />`}${one.title}</span></label>`,
    )}
  </div>`;
}

/** Copies a text, and says so. */
export const Copy = ({ text, label = "Copy" }) =>
  html`<${Button} icon="copy" kind="quiet" label=${label} onClick=${() => navigator.clipboard?.writeText(text).then(() => toast("Copied."), () => toast("This browser does not let the page copy.", "problem"))} />`;
