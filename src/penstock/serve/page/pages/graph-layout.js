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

const [HEIGHT, MARGIN] = [44, 28];
const width = (one) => Math.round(Math.min(244, Math.max(132, 56 + 7.1 * (one.fold ? one.fold.length + 6 : one.node.name.length))));
const MOST_ORDERED = 160;

/** Where everything is: {places: Map of id to {x, y, w, h} (its corner), paths: [{from, to, d}], width, height}. */
export function placed({ nodes, edges }, ratio) {
  const boxes = new Map([...nodes.values()].map((one) => [one.id, { w: width(one), h: HEIGHT }]));
  return nodes.size <= MOST_ORDERED ? shelved(apart(boxes, edges).map(ordered), ratio) : wrapped(boxes, edges, ratio);
}

/** What has nothing to do with one another, each for itself; the largest first. */
function apart(boxes, edges) {
  const beside = new Map([...boxes.keys()].map((id) => [id, []]));
  for (const [from, to] of edges) {
    beside.get(from).push(to);
    beside.get(to).push(from);
  }
  const seen = new Set();
  const parts = [];
  for (const id of boxes.keys()) {
    const part = new Map();
    const next = [id];
    while (next.length) {
      const one = next.pop();
      if (seen.has(one)) continue;
      seen.add(one);
      part.set(one, boxes.get(one));
      next.push(...beside.get(one));
    }
    if (part.size) parts.push({ boxes: part, edges: edges.filter(([from]) => part.has(from)) });
  }
  return parts.sort((a, b) => b.boxes.size - a.boxes.size);
}

/** By dagre: edges cross as little as can be, and lead around nodes. */
function ordered({ boxes, edges }) {
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 16, ranksep: 68 });
  for (const [id, { w, h }] of boxes) graph.setNode(id, { width: w, height: h });
  for (const [from, to] of edges) graph.setEdge(from, to, {});
  layout(graph);
  // a column is as wide as its widest node; dagre has left the room
  const columns = new Map();
  for (const id of boxes.keys()) {
    const x = Math.round(graph.node(id).x);
    columns.set(x, Math.max(columns.get(x) ?? 0, boxes.get(id).w));
  }
  const places = new Map();
  for (const [id, { h }] of boxes) {
    const { x, y } = graph.node(id);
    const w = columns.get(Math.round(x));
    places.set(id, { x: x - w / 2, y: y - h / 2, w, h });
  }
  const routes = new Map();
  for (const [from, to] of edges) {
    const through = graph.edge(from, to).points.slice(1, -1); // those between two columns only make bends
    routes.set(`${from}\n${to}`, through.filter(({ x }) => columns.has(Math.round(x))).map(({ x, y }) => ({ x, y, half: columns.get(Math.round(x)) / 2 })));
  }
  const { width: w, height: h } = graph.graph();
  return { places, edges, routes, width: w, height: h };
}

/** Parts beside and under one another, so that the whole has about the ratio of the window. */
function shelved(parts, ratio) {
  const gap = 44;
  const area = parts.reduce((sum, part) => sum + (part.width + gap) * (part.height + gap), 0);
  const wide = Math.max(...parts.map((part) => part.width), Math.sqrt(area * ratio));
  const [places, paths] = [new Map(), []];
  let [left, top, high, width] = [0, 0, 0, 0];
  for (const part of parts) {
    if (left && left + part.width > wide) [left, top, high] = [0, top + high + gap, 0];
    const move = (point) => ({ ...point, x: point.x + left + MARGIN, y: point.y + top + MARGIN });
    for (const [id, place] of part.places) places.set(id, move(place));
    for (const [from, to] of part.edges) paths.push({ from, to, d: curve(places.get(from), places.get(to), part.routes.get(`${from}\n${to}`).map(move)) });
    width = Math.max(width, left + part.width);
    high = Math.max(high, part.height);
    left += part.width + gap;
  }
  return { places, paths, width: width + 2 * MARGIN, height: top + high + 2 * MARGIN };
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
  let left = MARGIN;
  for (const layer of layers) {
    const wish = (id) => {
      const from = inputs.get(id).filter((read) => spot.has(read));
      return from.length ? from.reduce((sum, read) => sum + spot.get(read), 0) / from.length : 0.5;
    };
    const inOrder = layer.map((id, at) => [wish(id), at, id]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const columns = Math.ceil(inOrder.length / rows);
    const high = Math.ceil(inOrder.length / columns);
    inOrder.forEach(([, , id], at) => {
      const box = boxes.get(id);
      // along the rows, so that what belongs together stays at one height
      places.set(id, { ...box, x: left + (at % columns) * cell, y: MARGIN + ((rows - high) * row) / 2 + Math.floor(at / columns) * row });
      spot.set(id, at / inOrder.length);
    });
    left += columns * cell + gap;
  }
  const paths = edges.map(([from, to]) => ({ from, to, d: curve(places.get(from), places.get(to), []) }));
  return { places, paths, width: left - gap - cell + 244 + MARGIN, height: 2 * MARGIN + rows * row - 14 };
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

/** From the right of one to the left of the other; `between`: points of columns that it goes through, straight. */
function curve(from, to, between) {
  let [x, y] = [from.x + from.w, from.y + from.h / 2];
  let d = `M${round(x)} ${round(y)}`;
  const bend = (bx, by) => {
    const reach = bx >= x ? (bx - x) / 2 : 60; // back, in a circle of folds
    d += `C${round(x + reach)} ${round(y)} ${round(bx - reach)} ${round(by)} ${round(bx)} ${round(by)}`;
    [x, y] = [bx, by];
  };
  for (const point of between) {
    bend(point.x - point.half, point.y);
    d += `H${round(point.x + point.half)}`;
    x = point.x + point.half;
  }
  bend(to.x, to.y + to.h / 2);
  return d;
}

const round = (value) => Math.round(value * 10) / 10;
