// Where in a text an error is, as far as it says so.

/**
 * The stretch [start, end) that an error of a statement means, or null. The statement begins at `offset` of the text.
 * Errors say "line 2, column 8", or name what they mean in quotes.
 */
export function placeOf(problem, statement, offset) {
  const said = /line (\d+), column (\d+)/.exec(problem.detail ?? "");
  if (said) return stretch(statement, lineStart(statement, Number(said[1])) + Number(said[2]) - 1, offset);
  const named = /['"`]([\p{L}\p{N}_.]+)['"`]/u.exec(problem.detail ?? "")?.[1];
  const at = named ? word(statement, named) : -1;
  return at < 0 ? null : [offset + at, offset + at + named.length];
}

function lineStart(text, line) {
  let at = 0;
  for (let passed = 1; passed < line; passed++) at = text.indexOf("\n", at) + 1 || text.length;
  return at;
}

/** The whole word at a place; at the end of the text, the last one. */
function stretch(text, at, offset) {
  let start = Math.max(0, Math.min(at, text.length));
  if (start >= text.trimEnd().length) start = Math.max(0, text.trimEnd().search(/\S+$/));
  const length = /^(?:[\p{L}\p{N}_]+|\S|\s)/u.exec(text.slice(start))?.[0].length ?? 1;
  return [offset + start, offset + start + length];
}

function word(text, wanted) {
  const found = new RegExp(`(?<![\\p{L}\\p{N}_])${wanted.replaceAll(".", "\\.")}(?![\\p{L}\\p{N}_])`, "iu").exec(text);
  return found ? found.index : -1;
}
