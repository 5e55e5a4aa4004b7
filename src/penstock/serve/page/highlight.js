// SQL with its words told apart: enough to read it, not to check it.

import { html } from "./ui.js";

const KEYWORDS = new Set(
  `ADD AFTER ALL ALLOW ALTER AND ANTI ANY AS ASC AT ATOMIC AUTO BEGIN BETWEEN BUCKETS BY CASCADE CASE CAST CLUSTER COMMENT COMMIT CONSISTENCY CREATE
  CRON CROSS CUBE CURRENT DATE DELETE DESC DESCRIBE DISTINCT DOWNSTREAM DROP ELSE EMIT END ESCAPE EVERY EXCEPT EXISTS EXPLAIN FALSE FASTEST FILTER FIRST
  FOLLOWING FOR FROM FULL GROUP GROUPING HAVING IF ILIKE IMMEDIATE IN INCREMENTAL INNER INSERT INTERSECT INTERVAL INTO IS JOIN LAG LAST LATENESS LATERAL
  LEFT LIKE LIMIT MANUAL MATERIALIZED MERGE MODELS NATURAL NO NONE NOT NULL NULLS OFFSET ON OR ORDER OUTER OVER OVERWRITE PARTITION PARTITIONED PIVOT
  POLICY PRECEDING PRIORITY QUALIFY RANGE READ REFRESH REPLACE RESTRICT RESUME RIGHT RLIKE ROLLBACK ROLLUP ROW ROWS SCHEDULE SELECT SEMI SET SETS SHOW
  SLOWEST STRICT SUSPEND TABLE TARGET TBLPROPERTIES THEN TIMESTAMP TO TRIGGER TRUE UNBOUNDED UNION UNPIVOT UPDATE USING VALUES VIEW WATERMARK WHEN WHERE
  WINDOW WITH`.split(/\s+/),
);

const TOKEN =
  /(?<comment>--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|(?<string>[rR]?'(?:\\.|''|[^'\\])*(?:'|$)|"(?:\\.|[^"\\])*(?:"|$))|(?<name>`(?:``|[^`])*(?:`|$))|(?<number>\b\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?[a-zA-Z]{0,2}\b)|(?<word>[\p{L}_][\p{L}\p{N}_]*)|(?<space>\s+)|(?<sign>.)/gsu;

/** Every piece of a text: {kind, text}; together they are the text. */
export function tokens(text) {
  const found = [];
  for (const match of text.matchAll(TOKEN)) {
    let [kind, piece] = Object.entries(match.groups).find(([, value]) => value !== undefined);
    if (kind === "word") {
      const called = /^\s*\(/.test(text.slice(match.index + piece.length, match.index + piece.length + 20));
      kind = KEYWORDS.has(piece.toUpperCase()) ? "keyword" : called ? "function" : "word";
    }
    found.push({ kind, text: piece });
  }
  return found;
}

/** The same as elements, to stand in a <pre>. */
export const highlighted = (text) =>
  tokens(text).map(({ kind, text: piece }) => (["space", "word", "sign"].includes(kind) ? piece : html`<span class=${`sql-${kind}`}>${piece}</span>`));

const BREAKS = /^(SELECT|FROM|WHERE|GROUP|HAVING|ORDER|LIMIT|UNION|EXCEPT|INTERSECT|WINDOW|QUALIFY|JOIN|LEFT|RIGHT|FULL|CROSS|INNER|LATERAL)$/i;
const JOINING = /^(LEFT|RIGHT|FULL|CROSS|INNER|OUTER|SEMI|ANTI|LATERAL|NATURAL)$/i;

/** Lines after the first, which began in the middle of a statement, no further in than need be. */
function dedented(text) {
  const [first, ...lines] = text.split("\n");
  const least = Math.min(...lines.filter((line) => line.trim()).map((line) => line.match(/^ */)[0].length));
  return [first, ...lines.map((line) => line.slice(Number.isFinite(least) ? least : 0))].join("\n");
}

/** A query that stands on one line, a clause a line. One that has lines keeps them. */
export function laidOut(text) {
  if (text.includes("\n")) return dedented(text);
  if (text.length < 60) return text;
  let depth = 0;
  let before = "";
  let made = "";
  for (const { kind, text: piece } of tokens(text)) {
    if (kind === "sign") depth += piece === "(" ? 1 : piece === ")" ? -1 : 0;
    if (kind === "keyword" && depth === 0 && BREAKS.test(piece) && made && !JOINING.test(before)) made = `${made.trimEnd()}\n${/^(FROM|WHERE|GROUP|HAVING|ORDER|LIMIT|SELECT|UNION|EXCEPT|INTERSECT|WINDOW|QUALIFY)$/i.test(piece) ? "" : "  "}`;
    made += piece;
    if (kind !== "space") before = piece;
  }
  return made;
}
