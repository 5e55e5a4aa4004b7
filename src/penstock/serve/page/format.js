// Values as people read them. Pure functions: no page, no server.

const number = new Intl.NumberFormat("en-US");
const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

/** 12,345 */
export const count = (value) => (value === null || value === undefined ? "–" : number.format(value));
/** 12.3K */
export const compact = (value) => (value === null || value === undefined ? "–" : short.format(value));
export const plural = (value, one, many = `${one}s`) => `${count(value)} ${Number(value) === 1 ? one : many}`;

/** Seconds of work: 0 ms, 820 ms, 1.24 s, 48 s, 3 min 5 s, 2 h 4 min. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(Number(seconds))) return "–";
  const value = Number(seconds);
  if (value < 0.9995) return `${Math.round(value * 1000)} ms`;
  if (value < 9.995) return `${value.toFixed(2)} s`;
  return long(value);
}

/** An age or a lag, without more than it can mean: 4 s, 3 min, 2 h 4 min, 5 d 3 h. */
export function age(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(Number(seconds))) return "–";
  return Number(seconds) < 1 ? "0 s" : long(Number(seconds));
}

/** The same in its largest unit, where there is little room: 4 s, 3 min, 2 h, 5 d. */
export function brief(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const [name, unit] = [["d", 86_400], ["h", 3600], ["min", 60]].find(([, size]) => seconds >= size) ?? ["s", 1];
  return `${Math.floor(Math.max(0, seconds) / unit)} ${name}`;
}

function long(value) {
  const whole = Math.floor(value);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return pair(whole, 60, "min", 1, "s");
  if (whole < 86_400) return pair(whole, 3600, "h", 60, "min");
  return pair(whole, 86_400, "d", 3600, "h");
}

function pair(value, unit, name, below, small) {
  const rest = Math.floor((value % unit) / below);
  return `${Math.floor(value / unit)} ${name}${rest ? ` ${rest} ${small}` : ""}`;
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  let left = Number(value);
  while (left >= 1000 && at < units.length - 1) [left, at] = [left / 1000, at + 1];
  return `${left < 10 && at ? left.toFixed(1) : Math.round(left)} ${units[at]}`;
}

/** A moment as the reader's clock has it: 14:03:22 today, else 18 Nov 14:03. */
export function moment(value, now = Date.now()) {
  if (!value) return "–";
  const at = new Date(value);
  const today = new Date(now).toDateString() === at.toDateString();
  const time = at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(today ? { second: "2-digit" } : {}) });
  return today ? time : `${at.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${time}`;
}

/** The same in full, for titles. */
export const exactly = (value) => (value ? new Date(value).toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC").replace("Z", " UTC") : "");

/** A value of a row. */
export function cell(value) {
  if (value === null || value === undefined) return "NULL";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export const isNumeric = (type) => /^(tiny|small|big)?int|^(integer|long|short|byte|float|double|real|decimal|numeric)/i.test(type || "");

/** How a lag stands to its target: "none" (unknown), "free" (no target), "good", "near" (over 80 %), "late". */
export function lagTone(lag, target) {
  if (lag === null || lag === undefined) return "none";
  if (target === null || target === undefined) return "free";
  return lag > target ? "late" : lag > 0.8 * target ? "near" : "good";
}
