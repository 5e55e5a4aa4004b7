// The drawing of the graph: nodes are HTML over edges in SVG, moved and scaled as one. It knows nodes and places, and
// not where they come from.

import { Button, Icon, age, brief, classes, html, plural, useEffect, useLayoutEffect, useMemo, useNow, useRef } from "../ui.js";
import { standing } from "./graph-layout.js";

const [LEAST, MOST] = [0.05, 2];
const KINDS = { table: "table", view: "view", "plain view": "plain view" };
const SHAPES = { good: "●", near: "◆", late: "▲", free: "○", none: "○", failing: "✕", suspended: "‖", table: "" };
const WORST = ["failing", "late", "suspended", "near", "good", "free", "none", "table"];

export const kindOf = (node) => (node.read_model ? "read model" : KINDS[node.kind]);

/** In words, for who cannot see it. */
export function described(node, stand) {
  const marks = [
    stand.failing && "failing", stand.suspended && "suspended", stand.held && `held back by ${node.held_back_by.join(", ")}`,
    stand.recomputed && "recomputed", stand.immediate && "immediate", stand.tone === "late" && "over its target",
  ];
  const lag = stand.lag === null ? null : `${age(stand.lag)} old${node.target_lag_seconds ? ` of ${age(node.target_lag_seconds)}` : ""}`;
  return [node.name, kindOf(node), node.kind === "view" && (lag ?? "no rows yet"), ...marks].filter(Boolean).join(", ");
}

/**
 * `drawn`: what `folded` gave; `at`: what `placed` gave; `groups`: lists of ids to outline; `lit`: the ids to show, or null
 * for all; `edgeLit(from, to)`; `beats`: Map of name to a number that grows when it pulses; `working`: Set of names.
 */
export function Canvas({ drawn, at, groups, chosen, lit, edgeLit, beats, working, since, onChoose, onOpen, label, aim }) {
  const box = useRef();
  const world = useRef();
  const view = useRef({ x: 0, y: 0, k: 1, moved: false });
  const many = drawn.nodes.size > 160;
  const now = useNow(many ? 5 : 1);

  const put = () => {
    const { x, y, k } = view.current;
    world.current.style.transform = `translate(${x}px, ${y}px) scale(${k})`;
    box.current.dataset.far = k < 0.3 ? "2" : k < 0.62 ? "1" : "0";
    box.current.style.setProperty("--k", k);
  };
  const fit = () => {
    const { clientWidth: w, clientHeight: h } = box.current;
    const k = Math.max(LEAST, Math.min(1, (w - 16) / at.width, (h - 16) / at.height));
    view.current = { x: (w - at.width * k) / 2, y: Math.max(8, (h - at.height * k) / 2), k, moved: false };
    put();
  };
  const zoom = (factor, px = box.current.clientWidth / 2, py = box.current.clientHeight / 2) => {
    const { x, y, k } = view.current;
    const next = Math.max(LEAST, Math.min(MOST, k * factor));
    view.current = { x: px - ((px - x) * next) / k, y: py - ((py - y) * next) / k, k: next, moved: true };
    put();
  };
  const pan = (dx, dy) => {
    const { x, y, k } = view.current;
    view.current = { x: x + dx, y: y + dy, k, moved: true };
    put();
  };
  /** Bring a node into the window, large enough to be read. */
  const show = (id, near) => {
    const place = at.places.get(id);
    if (!place) return;
    const { clientWidth: w, clientHeight: h } = box.current;
    const k = near ? Math.max(view.current.k, 0.85) : view.current.k;
    const [cx, cy] = [place.x + place.w / 2, place.y + place.h / 2];
    const [sx, sy] = [view.current.x + cx * view.current.k, view.current.y + cy * view.current.k];
    const margin = 30 + (place.w / 2) * k;
    if (k === view.current.k && sx > margin && sx < w - margin && sy > 40 && sy < h - 40) return;
    view.current = { x: w / 2 - cx * k, y: h / 2 - cy * k, k, moved: true };
    put();
  };

  useLayoutEffect(fit, [at]);
  useEffect(() => {
    const watch = new ResizeObserver(() => view.current.moved || fit());
    watch.observe(box.current);
    return () => watch.disconnect();
  }, [at]);
  useEffect(() => aim?.id && show(aim.id, aim.near), [aim, at]);

  useEffect(() => {
    const element = box.current;
    const wheel = (event) => {
      event.preventDefault();
      const { left, top } = element.getBoundingClientRect();
      if (event.ctrlKey || !event.shiftKey) zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.clientX - left, event.clientY - top);
      else pan(-event.deltaX - event.deltaY, 0);
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, []);

  // one finger or the mouse moves it, two fingers scale it
  const fingers = useRef(new Map());
  const down = (event) => {
    if (event.button || event.target.closest(".canvas-tools")) return;
    fingers.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
    view.current.dragged = 0;
  };
  const drag = (event) => {
    const was = fingers.current.get(event.pointerId);
    if (!was) return;
    const [dx, dy] = [event.clientX - was.x, event.clientY - was.y];
    view.current.dragged += Math.abs(dx) + Math.abs(dy);
    if (view.current.dragged < 5) return;
    const dragged = view.current.dragged;
    if (!box.current.hasPointerCapture(event.pointerId)) box.current.setPointerCapture(event.pointerId);
    const others = [...fingers.current].filter(([id]) => id !== event.pointerId);
    if (!others.length) pan(dx, dy);
    else {
      const [, other] = others[0];
      const { left, top } = box.current.getBoundingClientRect();
      const far = (x, y) => Math.hypot(x - other.x, y - other.y) || 1;
      zoom(far(event.clientX, event.clientY) / far(was.x, was.y), (event.clientX + other.x) / 2 - left, (event.clientY + other.y) / 2 - top);
    }
    view.current.dragged = dragged;
    fingers.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
  };
  const up = (event) => fingers.current.delete(event.pointerId);
  const clicked = (event) => {
    if (view.current.dragged >= 5) return;
    const id = event.target.closest(".node")?.dataset.id;
    if (id) onChoose(id);
    else if (!event.target.closest("button")) onChoose(null);
  };
  const twice = (event) => {
    const id = event.target.closest(".node")?.dataset.id;
    if (id) onOpen(id);
  };

  const order = useMemo(() => inReadingOrder(at.places), [at]);
  const entry = at.places.has(chosen) ? chosen : order[0];
  const keyed = (event) => {
    const id = event.target.closest(".node")?.dataset.id;
    const zooms = { "+": 1.25, "=": 1.25, "-": 0.8 };
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1, Home: 0, End: 0 };
    if (event.key in zooms) zoom(zooms[event.key]);
    else if (event.key === "0" || event.key === "f") fit();
    else if (event.key === "Escape") onChoose(null);
    else if (id && event.key === "Enter") onOpen(id);
    else if (id && event.key === " ") onChoose(id);
    else if (event.key in moves) {
      const next = id ? neighbour(event.key, id, drawn.edges, at.places, order) : entry;
      if (next) focus(next);
    } else return;
    event.preventDefault();
  };
  const focus = (id) => {
    box.current.querySelector(`[data-id="${CSS.escape(id)}"]`)?.focus({ preventScroll: true });
    show(id, false);
    onChoose(id);
  };
  useEffect(() => {
    // the browser may not scroll the box itself: what has the focus is brought in by moving the drawing
    const element = box.current;
    const back = () => element.scrollTo(0, 0);
    element.addEventListener("scroll", back);
    return () => element.removeEventListener("scroll", back);
  }, []);

  return html`<div class="canvas" ref=${box} role="group" aria-label=${label} aria-describedby="graph-keys" data-nodes=${drawn.nodes.size}
    onPointerDown=${down} onPointerMove=${drag} onPointerUp=${up} onPointerCancel=${up} onClick=${clicked} onDblClick=${twice} onKeyDown=${keyed}>
    <p id="graph-keys" class="hidden">Arrow keys go from node to node: left to what it reads, right to what reads it, up and down in its column. Enter opens it. Plus, minus and 0 zoom. The same is in the table.</p>
    <div class=${classes("world", lit && "dimmed")} ref=${world}>
      <${Wires} at=${at} groups=${groups} edgeLit=${edgeLit} dimmed=${lit !== null} working=${working} homes=${drawn.homes} />
      ${[...drawn.nodes.values()].map((one) =>
        one.fold
          ? html`<${Fold} key=${one.id} one=${one} all=${drawn.all} place=${at.places.get(one.id)} lit=${!lit || lit.has(one.id)} chosen=${chosen === one.id} entry=${entry === one.id} waited=${(now - since) / 1000} working=${one.members.some((name) => working.has(name))} beat=${one.members.reduce((sum, name) => sum + (beats.get(name)?.number ?? 0), 0)} />`
          : html`<${Node} key=${one.id} node=${one.node} place=${at.places.get(one.id)} lit=${!lit || lit.has(one.id)} chosen=${chosen === one.id} entry=${entry === one.id} waited=${Math.max(0, now - (one.node.at ?? since)) / 1000} working=${working.has(one.id)} beat=${beats.get(one.id)} />`,
      )}
    </div>
    <div class="canvas-tools" role="group" aria-label="Zoom">
      <${Button} icon="plus" label="Zoom in" onClick=${() => zoom(1.3)} />
      <${Button} icon="minus" label="Zoom out" onClick=${() => zoom(1 / 1.3)} />
      <${Button} icon="fit" label="Fit all" onClick=${fit} />
    </div>
  </div>`;
}

const position = (place) => ({ left: `${place.x}px`, top: `${place.y}px`, width: `${place.w}px`, height: `${place.h}px` });

function Node({ node, place, lit, chosen, entry, waited, working, beat }) {
  const stand = standing(node, waited);
  const name = node.name;
  return html`<button type="button" class=${classes("node", `is-${stand.tone}`, node.read_model ? "model" : node.kind.replace(" ", "-"), !lit && "unlit", chosen && "chosen", working && "working")}
    style=${position(place)} data-id=${name} tabindex=${entry ? 0 : -1} aria-label=${described(node, stand)} aria-pressed=${chosen ? "true" : "false"} title=${name}>
    ${beat && html`<i key=${beat.number} class=${classes("ring", beat.kind)} />`}
    <span class="node-name"><${Icon} name=${node.read_model ? "model" : node.kind === "table" ? "table" : "view"} size=${13} /><b>${name}</b></span>
    <span class="node-line"><${Line} node=${node} stand=${stand} /><${Marks} stand=${stand} /></span>
  </button>`;
}

function Line({ node, stand }) {
  if (node.kind === "table") return html`<span class="what">table</span>`;
  if (node.kind === "plain view") return html`<span class="what">plain view</span>`;
  const words = stand.failing ? "failing" : stand.suspended ? "suspended" : stand.lag === null ? "no rows yet" : brief(stand.lag);
  return html`<span class="what"><span class="shape">${SHAPES[stand.tone]}</span> ${words}${!stand.failing && !stand.suspended && node.target_lag_seconds ? html`<span class="of"> / ${brief(node.target_lag_seconds)}</span>` : ""}</span>`;
}

const Marks = ({ stand }) => html`<span class="marks">
  ${stand.immediate && html`<span title="IMMEDIATE: it moves with its tables"><${Icon} name="bolt" size=${12} /></span>`}
  ${stand.recomputed && html`<span class="odd" title="Recomputed"><${Icon} name="refresh" size=${12} /></span>`}
  ${stand.held && html`<span class="bad" title="Held back"><${Icon} name="pause" size=${12} /></span>`}
  ${stand.failing && html`<span class="bad" title="Failing"><${Icon} name="warn" size=${12} /></span>`}</span>`;

/** Several nodes as one: how many of them stand how. */
function Fold({ one, all, place, lit, chosen, entry, waited, working, beat }) {
  const counts = {};
  for (const name of one.members) {
    const { tone } = standing(all.get(name), waited);
    counts[tone] = (counts[tone] ?? 0) + 1;
  }
  const tones = WORST.filter((tone) => counts[tone]);
  const said = tones.filter((tone) => tone !== "table").map((tone) => `${counts[tone]} ${WORDS[tone]}`);
  return html`<button type="button" class=${classes("node fold", `is-${tones[0]}`, !lit && "unlit", chosen && "chosen", working && "working")} style=${position(place)} data-id=${one.id}
    tabindex=${entry ? 0 : -1} aria-label=${`${one.fold}: ${plural(one.members.length, "node")} folded${said.length ? `, ${said.join(", ")}` : ""}. Enter unfolds them.`} aria-pressed=${chosen ? "true" : "false"} title=${`${one.fold}: ${said.join(", ") || "tables"}`}>
    ${beat > 0 && html`<i key=${beat} class="ring" />`}
    <span class="node-name"><${Icon} name="plus" size=${13} /><b>${one.fold}</b><span class="members">${one.members.length}</span></span>
    <span class="node-line bar">${tones.map((tone) => html`<i key=${tone} class=${`is-${tone}`} style=${{ flexGrow: counts[tone] }} />`)}</span>
  </button>`;
}

const WORDS = { failing: "failing", late: "over target", suspended: "suspended", near: "near target", good: "within target", free: "without target", none: "without rows" };

/** Edges, and under them the outlines of groups: a broad line around members and the edges between them. */
function Wires({ at, groups, edgeLit, dimmed, working, homes }) {
  const busy = new Set([...working].map((name) => homes.get(name)));
  return html`<svg class="wires" width=${Math.ceil(at.width)} height=${Math.ceil(at.height)} aria-hidden="true">
    ${groups.map((group, number) => html`<g key=${number} class="group">${[24, 21].map((size) => html`<${Band} key=${size} size=${size} group=${group} at=${at} />`)}</g>`)}
    ${at.paths.map(({ from, to, d }) => html`<path key=${`${from} ${to}`} class=${classes("wire", dimmed && (edgeLit(from, to) ? "lit" : "unlit"), busy.has(to) && "flowing")} d=${d} />`)}
  </svg>`;
}

function Band({ size, group, at }) {
  const inside = new Set(group);
  const around = size === 24 ? 11 : 9.5;
  return html`<g class=${size === 24 ? "rim" : "fill"}>
    ${at.paths.filter(({ from, to }) => inside.has(from) && inside.has(to)).map(({ from, to, d }) => html`<path key=${`${from} ${to}`} d=${d} stroke-width=${size} />`)}
    ${group.filter((id) => at.places.has(id)).map((id) => {
      const { x, y, w, h } = at.places.get(id);
      return html`<rect key=${id} x=${x - around} y=${y - around} width=${w + 2 * around} height=${h + 2 * around} rx="14" />`;
    })}</g>`;
}

// -- the keyboard's way through the graph -----------------------------------------------------------------------------

const middle = (place) => place.y + place.h / 2;
const inReadingOrder = (places) => [...places].sort(([, a], [, b]) => a.x - b.x || a.y - b.y).map(([id]) => id);

function neighbour(key, id, edges, places, order) {
  if (key === "Home") return order[0];
  if (key === "End") return order.at(-1);
  const here = places.get(id);
  const nearest = (ids) => ids.reduce((best, one) => (best === null || Math.abs(middle(places.get(one)) - middle(here)) < Math.abs(middle(places.get(best)) - middle(here)) ? one : best), null);
  if (key === "ArrowLeft") return nearest(edges.filter(([, to]) => to === id).map(([from]) => from));
  if (key === "ArrowRight") return nearest(edges.filter(([from]) => from === id).map(([, to]) => to));
  const side = key === "ArrowUp" ? -1 : 1;
  const column = order.filter((one) => {
    const place = places.get(one);
    return one !== id && place.x < here.x + here.w && here.x < place.x + place.w && (middle(place) - middle(here)) * side > 0;
  });
  return nearest(column);
}
