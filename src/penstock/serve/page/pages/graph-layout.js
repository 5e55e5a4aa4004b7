// What of the graph is shown, and where. Pure functions of its nodes: no page, no server.

import { Graph, layout } from "../vendor/dagre.js";
import { lagTone } from "../format.js";

/** The nodes with their layer: 0 for what reads nothing, else one more than the deepest they read. */
export function known({ nodes }) {
  const found = new Map();
  for (const node of nodes) found.set(node.name, { ...node, layer: 0 }); // inputs come before readers
  for (const node of found.values()) {
    node.layer = Math.max(0, ...node.reads.map((read) => (found.get(read)?.layer ?? -1) + 1));
  }
  return found;
}

/** How a node stands: what its colour, and its mark, say. */
export function standing(node, waited = 0) {
  const lag = lagNow(node, waited);
  const failing = node.failed || node.state === "ERROR";
  const suspended = node.state === "SUSPENDED";
  const tone = node.kind !== "view" ? "table" : failing ? "failing" : suspended ? "suspended" : lagTone(lag, node.target_lag_seconds);
  return { tone, lag, failing, suspended, held: node.held_back_by?.length > 0, recomputed: recomputed(node), immediate: node.immediate };
}

/** Seconds: one that moves with its tables does not age while nothing is written. */
export function lagNow(node, waited) {
  if (node.lag_seconds === null || node.lag_seconds === undefined) return null;
  return node.immediate && !node.stale ? 0 : node.lag_seconds + waited;
}

const recomputed = (node) =>
  node.kind === "view" && (node.incremental === false || (["FULL", "REINITIALIZE"].includes(node.last_action) && node.last_reason !== "INITIAL"));

/** All that a node reads, directly or not, and all that reads it. */
export function path(nodes, name) {
  const reach = (side) => {
    const seen = new Set();
    const next = [name];
    while (next.length) {
      for (const other of nodes.get(next.pop())?.[side] ?? []) {
        if (nodes.has(other) && !seen.has(other)) {
          seen.add(other);
          next.push(other);
        }
      }
    }
    return seen;
  };
  return { up: reach("reads"), down: reach("readers") };
}

// -- folding ----------------------------------------------------------------------------------------------------------

export const FOLDS = [
  { value: "none", title: "Nothing folded" },
  { value: "name", title: "Fold by schema or prefix" },
  { value: "layer", title: "Fold by layer" },
];

/** Before the first dot, else before the first underscore. */
function prefix(name) {
  const end = name.includes(".") ? name.indexOf(".") : name.indexOf("_");
  return end > 0 ? name.slice(0, end) : null;
}

const FOLDERS = {
  none: () => null,
  name: (node) => prefix(node.name),
  layer: (node) => (node.layer ? `layer ${node.layer}` : "tables"),
};

/**
 * The nodes that are drawn, and the edges between them. Nodes of one fold are one, unless it is in `open`; a fold of one
 * stays what it is. Gives {nodes: Map of id to {id, node} or {id, fold, members}, edges: [[from, to]], homes: Map}.
 */
export function folded(nodes, fold, open) {
  const folds = new Map();
  for (const node of nodes.values()) {
    const name = FOLDERS[fold](node);
    if (name !== null) folds.set(name, [...(folds.get(name) ?? []), node.name]);
  }
  const homes = new Map();
  const drawn = new Map();
  for (const node of nodes.values()) {
    const name = FOLDERS[fold](node);
    const members = name === null ? [] : folds.get(name);
    const id = members.length > 1 && !open.has(name) ? `fold ${name}` : node.name;
    homes.set(node.name, id);
    if (!drawn.has(id)) drawn.set(id, id === node.name ? { id, node } : { id, fold: name, members });
  }
  const edges = new Map();
  for (const node of nodes.values()) {
    for (const read of node.reads) {
      const [from, to] = [homes.get(read), homes.get(node.name)];
      if (from && from !== to) edges.set(`${from}\n${to}`, [from, to]);
    }
  }
  return { nodes: drawn, edges: [...edges.values()], homes };
}

// -- placing ----------------------------------------------------------------------------------------------------------

const HEIGHT = 44;
const width = (one) => Math.round(Math.min(244, Math.max(132, 56 + 7.1 * (one.fold ? one.fold.length + 6 : one.node.name.length))));
const MOST_ORDERED = 160;

/** Where everything is: {places: Map of id to {x, y, w, h} (its corner), paths: [{from, to, d}], width, height}. */
export function placed({ nodes, edges }, ratio) {
  const boxes = new Map([...nodes.values()].map((one) => [one.id, { w: width(one), h: HEIGHT }]));
  return nodes.size <= MOST_ORDERED ? ordered(boxes, edges) : wrapped(boxes, edges, ratio);
}

/** By dagre: edges cross as little as can be, and lead around nodes. */
function ordered(boxes, edges) {
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 16, ranksep: 64, marginx: 24, marginy: 24 });
  for (const [id, { w, h }] of boxes) graph.setNode(id, { width: w, height: h });
  for (const [from, to] of edges) graph.setEdge(from, to, {});
  layout(graph);
  const places = new Map();
  for (const [id, { w, h }] of boxes) {
    const { x, y } = graph.node(id);
    places.set(id, { x: x - w / 2, y: y - h / 2, w, h });
  }
  const paths = edges.map(([from, to]) => ({ from, to, d: curve(places.get(from), places.get(to), graph.edge(from, to).points.slice(1, -1)) }));
  const { width: w, height: h } = graph.graph();
  return { places, paths, width: w, height: h };
}

/**
 * For hundreds of nodes: layers, each of as many columns as make the whole as wide as the window is; in a layer, each
 * node is near what it reads. Dagre would take seconds for it, and its layers would be too high to be seen.
 */
function wrapped(boxes, edges, ratio) {
  const inputs = new Map([...boxes.keys()].map((id) => [id, []]));
  for (const [from, to] of edges) inputs.get(to).push(from);
  const layers = layered(inputs);
  const [cell, row, gap] = [260, HEIGHT + 14, 90];
  const rows = Math.max(6, Math.ceil(Math.sqrt((boxes.size * cell) / (ratio * row))));
  const places = new Map();
  const spot = new Map();
  let left = 24;
  for (const layer of layers) {
    const wish = (id) => {
      const from = inputs.get(id).filter((read) => spot.has(read));
      return from.length ? from.reduce((sum, read) => sum + spot.get(read), 0) / from.length : 0.5;
    };
    const inOrder = layer.map((id, at) => [wish(id), at, id]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const columns = Math.ceil(inOrder.length / rows);
    inOrder.forEach(([, , id], at) => {
      const box = boxes.get(id);
      // along the rows, so that what belongs together stays at one height
      places.set(id, { ...box, x: left + (at % columns) * cell, y: 24 + Math.floor(at / columns) * row });
      spot.set(id, at / inOrder.length);
    });
    left += columns * cell + gap;
  }
  const paths = edges.map(([from, to]) => ({ from, to, d: curve(places.get(from), places.get(to), []) }));
  return { places, paths, width: left - gap, height: 48 + rows * row };
}

/** Ids by their distance from what reads nothing. Folds may read each other in circles: an edge back does not count. */
function layered(inputs) {
  const depth = new Map();
  const of = (id, above) => {
    if (depth.has(id)) return depth.get(id);
    above.add(id);
    const found = Math.max(0, ...inputs.get(id).filter((read) => !above.has(read)).map((read) => of(read, above) + 1));
    above.delete(id);
    depth.set(id, found);
    return found;
  };
  const layers = [];
  for (const id of inputs.keys()) (layers[of(id, new Set())] ??= []).push(id);
  return layers.filter(Boolean);
}

/** From the right of one to the left of the other, by way of some points. */
function curve(from, to, between) {
  const points = [{ x: from.x + from.w, y: from.y + from.h / 2 }, ...between, { x: to.x, y: to.y + to.h / 2 }];
  let d = `M${points[0].x} ${points[0].y}`;
  for (let i = 1; i < points.length; i++) {
    const [a, b] = [points[i - 1], points[i]];
    const reach = b.x >= a.x ? (b.x - a.x) / 2 : 60; // back, in a circle of folds
    d += `C${a.x + reach} ${a.y} ${b.x - reach} ${b.y} ${b.x} ${b.y}`;
  }
  return d;
}
