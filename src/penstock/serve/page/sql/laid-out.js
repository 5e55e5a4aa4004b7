// A query as it is pleasant to read: by its line breaks, or one for each clause where it has few.

import { tokens } from "./highlight.js";

const CLAUSES = new Set("SELECT FROM WHERE GROUP HAVING ORDER LIMIT UNION EXCEPT INTERSECT WINDOW QUALIFY".split(" "));
const JOINS = new Set("JOIN LEFT RIGHT FULL CROSS INNER LATERAL NATURAL".split(" "));
const LEADS = new Set([...JOINS, "OUTER", "SEMI", "ANTI"]);
LEADS.delete("JOIN");

const KEPT = 4; // lines: whoever wrote so many has laid it out

export function laidOut(text) {
  const all = tokens(text);
  if (all.some(({ kind }) => kind === "comment") || text.trim().split("\n").length >= KEPT) return dedented(text);
  if (text.length < 60) return text;
  let [depth, before, made] = [0, "", ""];
  for (const { kind, text: piece } of all) {
    const word = piece.toUpperCase();
    if (kind === "sign") depth += piece === "(" ? 1 : piece === ")" ? -1 : 0;
    if (kind === "keyword" && depth === 0 && made && !LEADS.has(before)) {
      if (CLAUSES.has(word)) made = `${made.trimEnd()}\n`;
      else if (JOINS.has(word)) made = `${made.trimEnd()}\n  `;
    }
    made += kind === "space" ? " " : piece;
    if (kind !== "space") before = word;
  }
  return made;
}

/** Lines after the first, which began in the middle of a statement, no further in than need be. */
function dedented(text) {
  const [first, ...lines] = text.split("\n");
  const least = Math.min(...lines.filter((line) => line.trim()).map((line) => line.match(/^ */)[0].length));
  return [first, ...lines.map((line) => line.slice(Number.isFinite(least) ? least : 0))].join("\n");
}
