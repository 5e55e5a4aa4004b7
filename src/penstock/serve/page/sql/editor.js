// Where SQL is written: a plain text area over the same text in colours. The browser does the editing; what is added are
// colours, suggestions, and a mark where something is wrong.

import { classes, html, useId, useLayoutEffect, useMemo, useRef, useState } from "../ui.js";
import { suggested } from "./complete.js";
import { highlighted } from "./highlight.js";

const COLOURED = 60_000; // characters; of a longer text the colours would be late

/**
 * `known`: what can be suggested (complete.js). `wrong`: [start, end) of what is marked. `handle.current` gets
 * {selection(), insert(text), select(start, end), focus()}. `onRun` is Ctrl-Enter.
 */
export function Editor({ value, onInput, onRun, known, wrong, label, describedBy, handle, lines = 6, placeholder }) {
  const area = useRef();
  const [open, setOpen] = useState(null);
  const [chosen, setChosen] = useState(0);
  const id = useId();
  const colours = useMemo(() => (value.length > COLOURED ? value : highlighted(value, wrong)), [value, wrong]);
  if (handle) handle.current = handleOf(area, value, onInput);
  const close = () => setOpen(null);
  const suggest = (asked) => {
    const { selectionStart: at, selectionEnd: end, value: text } = area.current;
    const found = known && at === end ? suggested(text, at, known, asked) : null;
    setOpen(found && { ...found, ...spot(text, found.from) });
    setChosen(0);
  };
  const input = (event) => {
    onInput(event.target.value);
    if (event.inputType === "insertText" || event.inputType === "deleteContentBackward") suggest(false);
    else close();
  };
  const take = (one) => {
    replace(area.current, open.from, open.to, one.text);
    onInput(area.current.value);
    close();
    area.current.focus();
  };
  const key = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      close();
      onRun?.();
    } else if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      suggest(true);
    } else if (open) inList(event);
  };
  const inList = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setChosen((chosen + step + open.list.length) % open.list.length);
    else if (event.key === "Tab" || event.key === "Enter") take(open.list[chosen]);
    else if (event.key === "Escape") close();
    else if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) return close();
    else return undefined;
    event.preventDefault();
    return undefined;
  };
  return html`<div class="editor" style=${{ "--lines": lines }}>
    <div class="editor-scroll">
      <div class="editor-stack">
        <pre class="editor-text" aria-hidden="true">${colours}${"\n"}</pre>
        <textarea ref=${area} id=${id} value=${value} onInput=${input} onKeyDown=${key} onBlur=${close} onMouseDown=${close} spellcheck="false" autocapitalize="off" autocomplete="off" wrap="off"
          aria-label=${label} aria-describedby=${describedBy} aria-autocomplete=${known ? "list" : undefined} aria-controls=${open ? `${id}l` : undefined} aria-activedescendant=${open ? `${id}o${chosen}` : undefined} placeholder=${placeholder} />
        ${open && html`<${Suggestions} id=${id} open=${open} chosen=${chosen} take=${take} />`}
      </div>
    </div></div>`;
}

function Suggestions({ id, open, chosen, take }) {
  const list = useRef();
  useLayoutEffect(() => list.current.children[chosen]?.scrollIntoView({ block: "nearest" }), [chosen, open]);
  const hold = (event) => event.preventDefault(); // the text keeps the focus
  return html`<ul class="suggestions" id=${`${id}l`} role="listbox" aria-label="Suggestions" ref=${list} style=${{ "--line": open.line, "--column": open.column }} onMouseDown=${hold}>
    ${open.list.map(
      (one, place) => html`<li key=${`${one.kind} ${one.text}`} id=${`${id}o${place}`} role="option" aria-selected=${place === chosen ? "true" : "false"} class=${classes(place === chosen && "at")} onClick=${() => take(one)}>
        <span class=${`suggestion-kind ${one.kind}`} aria-hidden="true">${one.kind[0].toUpperCase()}</span><span>${one.text}</span><span class="dim">${one.detail}</span></li>`,
    )}</ul>`;
}

/** The line and column of a place in a text, from 0. */
function spot(text, at) {
  const before = text.slice(0, at);
  return { line: before.split("\n").length - 1, column: at - (before.lastIndexOf("\n") + 1) };
}

/** By the browser's own command, so that undo takes it back. */
function replace(area, from, to, text) {
  area.focus();
  area.setSelectionRange(from, to);
  if (!document.execCommand("insertText", false, text)) area.setRangeText(text, from, to, "end");
}

function handleOf(area, value, onInput) {
  return {
    selection: () => ({ start: area.current.selectionStart, end: area.current.selectionEnd }),
    insert: (text) => {
      replace(area.current, area.current.selectionStart, area.current.selectionEnd, text);
      onInput(area.current.value);
    },
    select: (start, end) => {
      area.current.focus();
      area.current.setSelectionRange(start, end);
    },
    focus: () => area.current.focus(),
  };
}
