// SQL as coloured text: cut into tokens, and shown. It knows words and quotes, not grammar.

import { html } from "../vendor/preact-htm.js";

const WORDS = `ADD ADVANCE AFTER ALL ALLOW ALTER ALWAYS AND ANTI ANY AS ASC AT ATOMIC AUTO BEGIN BETWEEN BUCKETS BY CACHE CASCADE CASE CAST
CHECKPOINT CLUSTER COLUMN COLUMNS COMMENT COMMIT CONSISTENCY CREATE CRON CROSS CUBE CURRENT DATA DATABASE DAY DAYS DELETE DELTA
DEPENDENCIES DESC DESCRIBE DISTINCT DOWNSTREAM DROP EMIT ELSE END EPOCH EVERY EXCEPT EXISTS EXPLAIN EXTENDED FALSE FILTER FIRST FOLLOWING FOR FROM
FULL FUNCTION GROUP GROUPING GROUPS HAVING HISTORY HOUR HOURS IF ILIKE IMMEDIATE IN INCREMENTAL INNER INSERT INTERSECT INTERVAL INTO IS JOIN LAG LAST
LATE LATENESS LATERAL LEFT LIKE LIMIT MANUAL MATCHED MATERIALIZED MERGE MINUS MINUTE MINUTES MODELS MONTH NATURAL NO NONE NOT NULL NULLS OF OFFSET ON
ONLY OR ORDER OUTER OVER OVERWRITE PARTITION PARTITIONED PERIODICALLY PIVOT POLICY PRECEDING PRIORITY QUALIFY RANGE READ RECURSIVE REFRESH REGISTER
REPLACE REPLAY RESTORE RESTRICT RESUME RIGHT RLIKE ROLLBACK ROLLUP ROW ROWS SCHEDULE SCHEMA SCHEMAS SECOND SECONDS SELECT SEMI SET SETS SETTINGS SHOW STRICT
SUSPEND TABLE TABLES TARGET TBLPROPERTIES THEN TIMESTAMP TO TRIGGER TRUE TRUNCATE UNBOUNDED UNION UNPIVOT UPDATE USE USING VACUUM VALUES VERSION VIEW
VIEWS WATERMARK WATERMARKS WEEK WHEN WHERE WINDOW WITH WITHIN YEAR ZONE`;
export const KEYWORDS = WORDS.split(/\s+/);
const known = new Set(KEYWORDS);

const TYPES = new Set(`BIGINT BINARY BOOLEAN BYTE CHAR DATE DECIMAL DOUBLE FLOAT INT INTEGER LONG MAP NUMERIC REAL SHORT SMALLINT STRING STRUCT
ARRAY TIMESTAMP_NTZ TINYINT VARCHAR VARIANT`.split(/\s+/));

const TOKEN = new RegExp(
  [
    "(?<space>\\s+)",
    "(?<comment>--[^\\n]*|/\\*[\\s\\S]*?(?:\\*/|$))",
    "(?<string>'(?:[^'\\\\]|\\\\[\\s\\S]|'')*(?:'|$)|\"(?:[^\"\\\\]|\\\\[\\s\\S])*(?:\"|$))",
    "(?<quoted>`(?:[^`]|``)*(?:`|$))",
    "(?<number>\\d+(?:\\.\\d*)?(?:[eE][+-]?\\d+)?[A-Za-z]{0,2}|\\.\\d+)",
    "(?<word>[\\p{L}_][\\p{L}\\p{N}_$]*)",
    "(?<sign>[\\s\\S])",
  ].join("|"),
  "uy",
);

/** [{kind, text, start}]: space, comment, string, name, number, keyword, type, call, sign. */
export function tokens(text) {
  const found = [];
  TOKEN.lastIndex = 0;
  for (let match; (match = TOKEN.exec(text)); ) {
    const [group] = Object.entries(match.groups).find(([, value]) => value !== undefined);
    found.push({ kind: group === "word" ? kindOf(match[0], text, TOKEN.lastIndex) : group === "quoted" ? "name" : group, text: match[0], start: match.index });
  }
  return found;
}

function kindOf(word, text, end) {
  const upper = word.toUpperCase();
  if (known.has(upper)) return "keyword";
  if (TYPES.has(upper)) return "type";
  return /^\s*\(/.test(text.slice(end, end + 20)) ? "call" : "name";
}

/** The statements of a text, without the semicolons between them: [{text, start, end}]. */
export function statements(text) {
  const found = [];
  let start = 0;
  const close = (end) => {
    const part = text.slice(start, end);
    if (tokens(part).some((token) => token.kind !== "space" && token.kind !== "comment")) {
      const lead = part.length - part.trimStart().length;
      found.push({ text: part.trim(), start: start + lead, end });
    }
    start = end + 1;
  };
  for (const token of tokens(text)) if (token.kind === "sign" && token.text === ";") close(token.start);
  close(text.length);
  return found;
}

const PLAIN = new Set(["space", "name", "sign"]);

/** The text with its tokens in spans, `sql-keyword` and so on. `mark` is a stretch [start, end) to underline. */
export function highlighted(text, mark = null) {
  return tokens(text).map((token, place) => {
    const marked = mark && token.start < mark[1] && token.start + token.text.length > mark[0];
    if (!marked && PLAIN.has(token.kind)) return token.text;
    return html`<span key=${place} class=${`sql-${token.kind}${marked ? " sql-wrong" : ""}`}>${token.text}</span>`;
  });
}

/** SQL to be read. */
export const Sql = ({ text, label, class: more = "" }) =>
  html`<pre class=${`sql ${more}`} tabindex="0" role="region" aria-label=${label || "SQL"}><code>${highlighted(text)}</code></pre>`;
