// Documents: what differs between two of them, and one as a tree that can be walked with the keyboard.

import { Button, classes, count, html, plural, useEffect, useMemo, useRef, useState } from "../ui.js";

const isBranch = (value) => typeof value === "object" && value !== null;
export const keyOf = (path) => JSON.stringify(path);

/** Where two documents differ: [{path, kind: "changed" | "added" | "removed", before, after}]; paths are of the new one. */
export function differences(before, after, path = []) {
  if (Object.is(before, after)) return [];
  if (!isBranch(before) || !isBranch(after) || Array.isArray(before) !== Array.isArray(after)) return [{ path, kind: "changed", before, after }];
  if (Array.isArray(after)) return inArrays(before, after, path);
  const found = [];
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) found.push(...member(before, after, name, path));
  return found;
}

function member(before, after, name, path) {
  const at = [...path, name];
  if (!(name in before)) return [{ path: at, kind: "added", after: after[name] }];
  if (!(name in after)) return [{ path: at, kind: "removed", before: before[name] }];
  return differences(before[name], after[name], at);
}

/** Elements that say who they are (`id`) are compared with themselves, others with what stood in their place. */
function inArrays(before, after, path) {
  const known = [before, after].every((list) => list.every((one) => isBranch(one) && one.id !== undefined) && new Set(list.map((one) => one.id)).size === list.length);
  if (!known) {
    const found = after.flatMap((value, at) => (at < before.length ? differences(before[at], value, [...path, at]) : [{ path: [...path, at], kind: "added", after: value }]));
    return [...found, ...before.slice(after.length).map((value, at) => ({ path: [...path, after.length + at], kind: "removed", before: value }))];
  }
  const had = new Map(before.map((one) => [one.id, one]));
  const has = new Set(after.map((one) => one.id));
  const found = after.flatMap((value, at) => (had.has(value.id) ? differences(had.get(value.id), value, [...path, at]) : [{ path: [...path, at], kind: "added", after: value }]));
  return [...found, ...before.filter((one) => !has.has(one.id)).map((one) => ({ path: [...path, one.id], kind: "removed", before: one }))];
}

/** $.author.company.name, $.posts[2] */
export const written = (path) => `$${path.map((part) => (typeof part === "number" ? `[${part}]` : /^[A-Za-z_]\w*$/.test(part) ? `.${part}` : `["${part}"]`)).join("")}`;

/** A value in a few words. */
export function brief(value) {
  if (value === undefined) return "nothing";
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}

const FIRST = 100;

/** The lines of a tree that are to be seen: [{path, key, name, value, level, open, size, at}]. */
function lines(value, closed, more) {
  const found = [];
  const walk = (name, one, path, level, at, size) => {
    const key = keyOf(path);
    const branch = isBranch(one);
    const open = branch && !closed(key, level);
    found.push({ path, key, name, value: one, level, branch, open, at, size });
    if (!open) return;
    const members = Array.isArray(one) ? one.map((each, place) => [place, each]) : Object.entries(one);
    const shown = Math.min(members.length, more.get(key) ?? FIRST);
    members.slice(0, shown).forEach(([part, each], place) => walk(part, each, [...path, part], level + 1, place + 1, members.length));
    if (shown < members.length) found.push({ path, key: `${key}+`, more: members.length - shown, of: key, level: level + 1, at: shown + 1, size: members.length });
  };
  walk("$", value, [], 1, 1, 1);
  return found;
}

/** `marks`: by keyOf(path), what was changed there, in words. */
export function Tree({ value, marks = new Map(), label }) {
  const [turned, setTurned] = useState(new Map());
  const [more, setMore] = useState(new Map());
  const [at, setAt] = useState(keyOf([]));
  const list = useRef();
  const closed = (key, level) => (turned.has(key) ? !turned.get(key) : level > 4);
  const rows = useMemo(() => lines(value, closed, more), [value, turned, more]);
  const turn = (row, open) => setTurned(new Map(turned).set(row.key, open));
  const grow = (row) => setMore(new Map(more).set(row.of, (more.get(row.of) ?? FIRST) + 10 * FIRST));
  const focus = (place) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, place))];
    setAt(row.key);
    [...list.current.children].find((item) => item.dataset.key === row.key)?.focus();
  };
  const key = (event) => {
    const place = rows.findIndex((row) => row.key === at);
    const row = rows[place];
    const parent = () => rows.slice(0, place).findLastIndex((one) => one.level < row.level);
    const done = {
      ArrowDown: () => focus(place + 1),
      ArrowUp: () => focus(place - 1),
      Home: () => focus(0),
      End: () => focus(rows.length - 1),
      ArrowRight: () => (row.branch && !row.open ? turn(row, true) : row.branch && focus(place + 1)),
      ArrowLeft: () => (row.open ? turn(row, false) : parent() >= 0 && focus(parent())),
      Enter: () => (row.more ? grow(row) : row.branch && turn(row, !row.open)),
      " ": () => (row.more ? grow(row) : row.branch && turn(row, !row.open)),
    }[event.key];
    if (!done) return;
    event.preventDefault();
    done();
  };
  const reach = rows.some((row) => row.key === at) ? at : rows[0].key;
  return html`<ul class="tree" role="tree" aria-label=${label} ref=${list} onKeyDown=${key}>
    ${rows.map(
      (row) => html`<li key=${row.key} data-key=${row.key} role="treeitem" aria-level=${row.level} aria-setsize=${row.size} aria-posinset=${row.at} aria-expanded=${row.branch ? (row.open ? "true" : "false") : undefined} aria-selected=${row.key === reach ? "true" : "false"}
        tabindex=${row.key === reach ? 0 : -1} class=${classes("tree-row", marks.has(row.key) && "changed")} style=${{ "--level": row.level }} onFocus=${() => setAt(row.key)} onClick=${() => (row.more ? grow(row) : row.branch && turn(row, !row.open))}>
        <${Line} row=${row} mark=${marks.get(row.key)} /></li>`,
    )}</ul>`;
}

function Line({ row, mark }) {
  if (row.more) return html`<span class="textual">${count(row.more)} more</span>`;
  const { name, value } = row;
  const size = Array.isArray(value) ? plural(value.length, "element") : row.branch ? plural(Object.keys(value).length, "member") : "";
  return html`<span class=${classes("twist", row.branch && (row.open ? "open" : "closed"))} aria-hidden="true" />
    <span class=${classes("tree-name", typeof name === "number" && "index")}>${name}</span>
    ${row.branch ? html`<span class="dim">${Array.isArray(value) ? "[ ]" : "{ }"} ${size}</span>` : html`<span class=${`tree-value ${value === null ? "null" : typeof value}`}>${JSON.stringify(value)}</span>`}
    ${mark && html`<span class="mark">${mark}</span>`}`;
}
