// What a word that is being written may become: tables, views, their columns, words of SQL.

import { KEYWORDS, tokens } from "./highlight.js";

/** What there is to name, from the schema: {relations: [{name, kind, columns}]}. */
export function names(schema) {
  const relations = [
    ...schema.tables.map((table) => ({ name: table.name, kind: "table", columns: table.columns })),
    ...schema.materializedViews.map((view) => ({ name: view.name, kind: "view", columns: view.columns })),
  ];
  return { relations };
}

const PLAIN = /^[A-Za-z_][A-Za-z0-9_]*$/;
const quoted = (name) => (name.split(".").every((part) => PLAIN.test(part)) ? name : `\`${name.replaceAll("`", "``")}\``);

/**
 * The suggestions at a place: {from, to, list: [{text, kind, detail}]}, or null. `asked`: also where no word was begun.
 */
export function suggested(text, at, known, asked = false) {
  const before = text.slice(0, at);
  const word = /[\p{L}_`][\p{L}\p{N}_.`]*$/u.exec(before)?.[0] ?? "";
  if (!word && !asked) return null;
  const inside = tokens(before).at(-1);
  if (inside && (inside.kind === "comment" || (inside.kind === "string" && inside.start + inside.text.length === at && !/(['"])$/.test(inside.text.slice(1))))) return null;
  const dot = word.lastIndexOf(".");
  const list = dot < 0 ? plain(text, before, word, known) : columnsOf(text, word.slice(0, dot), word.slice(dot + 1), known);
  const from = at - (dot < 0 ? word.length : word.length - dot - 1);
  const exact = list.length === 1 && list[0].text.toLowerCase() === text.slice(from, at).toLowerCase();
  return list.length && !exact ? { from, to: at, list: list.slice(0, 40) } : null;
}

function plain(text, before, word, known) {
  const wanted = word.toLowerCase().replaceAll("`", "");
  const last = tokens(before.slice(0, before.length - word.length)).filter((token) => !["space", "comment"].includes(token.kind)).at(-1);
  const afterFrom = last && (/^(FROM|JOIN|INTO|UPDATE|TABLE|VIEW|FOR|DESCRIBE)$/i.test(last.text) || (last.text === "," && /\bFROM\b[^;()]*$/i.test(before) && !/\b(WHERE|ON|BY|SELECT)\b[^;()]*$/i.test(before)));
  const used = new Set(mentioned(text, known).map((relation) => relation.name));
  const found = [];
  const add = (name, kind, detail, weight) => {
    const low = name.toLowerCase();
    if (low.startsWith(wanted)) found.push({ text: quoted(name), kind, detail, weight });
    else if (wanted.length > 1 && low.includes(wanted) && kind !== "word") found.push({ text: quoted(name), kind, detail, weight: weight + 5 });
  };
  for (const relation of known.relations) add(relation.name, relation.kind, relation.kind, afterFrom ? 0 : used.has(relation.name) ? 2 : 3);
  if (!afterFrom) {
    const columns = new Map();
    for (const relation of known.relations.filter((one) => used.has(one.name))) for (const column of relation.columns) columns.set(column.name, columns.has(column.name) ? "column" : `${column.type}, ${relation.name}`);
    for (const [name, detail] of columns) add(name, "column", detail, 1);
  }
  if (wanted) for (const keyword of KEYWORDS) add(keyword, "word", "", afterFrom ? 6 : 4);
  return found.sort((a, b) => a.weight - b.weight || a.text.localeCompare(b.text)).map((one) => (one.kind === "word" && word === word.toLowerCase() && word ? { ...one, text: one.text.toLowerCase() } : one));
}

function mentioned(text, known) {
  const words = new Set(tokens(text).map((token) => token.text.toLowerCase().replaceAll("`", "")));
  return known.relations.filter((relation) => words.has(relation.name.toLowerCase()) || words.has(relation.name.toLowerCase().split(".").at(-1)));
}

/** Columns behind a dot: of a relation, or of the alias of one. */
function columnsOf(text, before, begun, known) {
  const name = before.toLowerCase().replaceAll("`", "");
  const byName = (wanted) => known.relations.find((relation) => relation.name.toLowerCase() === wanted);
  const relation = byName(name) ?? byName(aliased(text, name));
  const low = begun.toLowerCase().replaceAll("`", "");
  if (relation) return relation.columns.filter((column) => column.name.toLowerCase().startsWith(low)).map((column) => ({ text: quoted(column.name), kind: "column", detail: column.type }));
  const inSchema = known.relations.filter((one) => one.name.toLowerCase().startsWith(`${name}.${low}`));
  return inSchema.map((one) => ({ text: quoted(one.name.slice(name.length + 1)), kind: one.kind, detail: one.kind }));
}

function aliased(text, alias) {
  const words = tokens(text).filter((token) => !["space", "comment"].includes(token.kind));
  for (let place = 1; place < words.length; place++) {
    if (words[place].text.toLowerCase().replaceAll("`", "") !== alias) continue;
    const back = words[place - 1].text.toUpperCase() === "AS" ? place - 2 : place - 1;
    if (words[back]?.kind === "name") return words[back].text.toLowerCase().replaceAll("`", "");
  }
  return "";
}
