// Everything that is asked of the server. The page uses nothing but the public API, and knows its token only in memory,
// or in this tab's session storage if its user says so.

export class Problem extends Error {
  constructor(status, told) {
    super(told.detail || told.error || "something went wrong");
    this.name = "Problem";
    this.status = status;
    this.error = told.error || "";
    this.detail = told.detail || "";
    this.help = told.help || "";
    this.exception = told.exception || "";
    this.views = told.views || null;
  }
}

/** A value that can be watched. */
export class Store {
  constructor(value) {
    this.value = value;
    this.watchers = new Set();
  }
  set(value) {
    if (Object.is(value, this.value)) return;
    this.value = value;
    for (const watch of [...this.watchers]) watch(value);
  }
  watch(watcher) {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }
}

const KEPT_TOKEN = "penstock.token";
/** null as long as a token is not asked for; else why one is. */
export const signIn = new Store(null);
/** Who asks: {user, role, databases}, as the server says. */
export const identity = new Store(null);
export const currentDatabase = new Store(null);
/** How the stream of events is: {state: "off" | "connecting" | "live" | "waiting", since, again}. */
export const connection = new Store({ state: "off", since: Date.now(), again: null });

let token = keptToken();
let waiting = [];

function keptToken() {
  try {
    return sessionStorage.getItem(KEPT_TOKEN);
  } catch {
    return null;
  }
}

function keep(text, kept) {
  try {
    if (kept && text) sessionStorage.setItem(KEPT_TOKEN, text);
    else sessionStorage.removeItem(KEPT_TOKEN);
  } catch {
    // nothing is kept then
  }
}

export const hasToken = () => token !== null;

/** Try a token; it is taken if the server knows it. Requests that wait for one go on. */
export async function useToken(text, kept) {
  const found = await fetch(address("whoami"), { headers: { Authorization: `Bearer ${text}` } });
  if (!found.ok) throw await problemOf(found);
  token = text;
  keep(text, kept);
  identity.set(await found.json());
  signIn.set(null);
  const gone = waiting;
  waiting = [];
  for (const { go } of gone) go();
}

/** Go on without a token: what waits for one fails. */
export function dismissSignIn() {
  signIn.set(null);
  const gone = waiting;
  waiting = [];
  for (const { stop } of gone) stop();
}

export function forgetToken() {
  token = null;
  keep(null, false);
  identity.set(null);
  signIn.set("You are signed out.");
}

function address(path, params) {
  const url = new URL(`api/v1/${path}`, document.baseURI);
  for (const [name, value] of Object.entries(params || {})) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, value);
  }
  return url;
}

async function problemOf(found) {
  try {
    return new Problem(found.status, await found.json());
  } catch {
    const help = "Look at the server's log, or at the proxy in between.";
    return new Problem(found.status, { error: "unreadable", detail: `the server answered ${found.status}.`, help });
  }
}

function unreachable() {
  return new Problem(0, {
    error: "not reachable",
    detail: "the server does not answer.",
    help: "See whether penstock serve is running, and try again.",
  });
}

/** One request. If a token is missing or is not known any more, it waits until there is one, and is sent again. */
async function ask(method, path, { params, body, headers = {}, signal } = {}) {
  const url = address(path, { database: currentDatabase.value, ...params });
  const sent = { ...headers };
  if (body !== undefined) sent["Content-Type"] = "application/json";
  if (method !== "GET") sent["X-Request-Id"] = `studio-${crypto.getRandomValues(new Uint32Array(3)).join("-")}`;
  for (let lost = 0; ; ) {
    const used = token;
    if (used) sent.Authorization = `Bearer ${used}`;
    let found;
    try {
      found = await fetch(url, { method, headers: sent, signal, body: body === undefined ? undefined : JSON.stringify(body) });
    } catch (problem) {
      if (problem.name === "AbortError") throw problem;
      // With its X-Request-Id the server does it once, however often it is sent.
      if (method === "GET" || ++lost > 2) throw unreachable();
      await new Promise((done) => setTimeout(done, 500 * lost));
      continue;
    }
    if (found.status === 401) {
      if (used === token) await signedIn(used);
      continue;
    }
    if (!found.ok && found.status !== 304) throw await problemOf(found);
    return found;
  }
}

function signedIn(used) {
  if (used) {
    token = null;
    keep(null, false);
  }
  if (signIn.value === null) {
    signIn.set(used ? "Your token is not valid any more: it has expired, or was revoked." : "This server takes a token.");
  }
  return new Promise((go, fail) => {
    const stop = () => fail(new Problem(401, { error: "not signed in", detail: "this takes a token.", help: "Sign in, and try again." }));
    waiting.push({ go, stop });
  });
}

/** JSON, with whole numbers that JavaScript would round as texts. */
function decoded(text) {
  const whole = (_, value, context) => (typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "") ? context.source : value);
  return /\d{16}/.test(text) ? JSON.parse(text, whole) : JSON.parse(text);
}

const bodyOf = async (found) => decoded(await found.text());

const known = new Map();

/** JSON of a GET. Where the server gives an ETag, what has not changed is the same object as before. */
async function get(path, params, { signal } = {}) {
  const key = String(address(path, { database: currentDatabase.value, ...params }));
  const had = known.get(key);
  const found = await ask("GET", path, { params, signal, headers: had ? { "If-None-Match": had.etag } : {} });
  if (found.status === 304 && had) return had.body;
  const body = await bodyOf(found);
  const etag = found.headers.get("ETag");
  if (etag) {
    known.delete(key);
    known.set(key, { etag, body });
    if (known.size > 50) known.delete(known.keys().next().value);
  }
  return body;
}

const sending = (method) => async (path, body, { signal, params } = {}) => bodyOf(await ask(method, path, { body, signal, params }));

const statement = (kind) => async (text, params, { limit, signal, database } = {}) => {
  const name = encodeURIComponent(database ?? currentDatabase.value);
  const body = { language: "sql", command: text, ...(params ? { params } : {}), ...(limit ? { limit } : {}) };
  return bodyOf(await ask("POST", `${kind}/${name}`, { body, signal }));
};

export const api = {
  get,
  post: sending("POST"),
  patch: sending("PATCH"),
  put: sending("PUT"),
  del: async (path, { params, signal } = {}) => (await ask("DELETE", path, { params, signal })).json(),
  /** A statement that only reads: {result, returned, truncated, limit}. */
  query: statement("query"),
  /** Any statement. */
  command: statement("command"),
  /** The answer as it is: for streams and downloads. */
  open: (path, { params, headers, signal } = {}) => ask("GET", path, { params, headers, signal }),
  events,
};

// -- events -----------------------------------------------------------------------------------------------------------

const SILENT = 45_000; // the server says something at least every 15 seconds
const hearers = new Set();
let stream = null;

/**
 * Tell `onEvent({kind, id, data})` what happens in the current database, until `signal` is aborted. All listeners share
 * one stream. After an interruption it goes on behind the last event; `gap` says that some are missing.
 */
function events(onEvent, { signal } = {}) {
  hearers.add(onEvent);
  signal?.addEventListener("abort", () => hearers.delete(onEvent));
  follow();
}

/** Follow the current database; the one that was followed before is left. */
export function follow() {
  const database = currentDatabase.value;
  if (database === null || stream?.database === database) return;
  stream?.stop.abort();
  stream = { database, stop: new AbortController(), last: null };
  run(stream);
}

/** Do not wait any longer before the next attempt. */
export function reconnect() {
  stream?.hurry?.();
}

async function run(mine) {
  let failed = 0;
  while (!mine.stop.signal.aborted) {
    tell("connecting");
    const silence = new AbortController();
    let timer;
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENT);
    };
    try {
      const headers = { Accept: "text/event-stream", ...(mine.last ? { "Last-Event-ID": mine.last } : {}) };
      const signal = AbortSignal.any([mine.stop.signal, silence.signal]);
      const found = await ask("GET", `events/${encodeURIComponent(mine.database)}`, { headers, signal });
      tell("live");
      failed = 0;
      heard();
      await read(found.body, heard, (event) => {
        if (event.id) mine.last = event.id;
        for (const hear of [...hearers]) hear(event);
      });
    } catch (problem) {
      if (problem.name !== "AbortError" && !(problem instanceof Problem) && !(problem instanceof TypeError)) console.error(problem);
    }
    clearTimeout(timer);
    if (mine.stop.signal.aborted) return;
    const wait = Math.min(30_000, 1000 * 2 ** failed++) * (0.75 + Math.random() / 2);
    tell("waiting", Date.now() + wait);
    await new Promise((done) => {
      const later = setTimeout(done, wait);
      mine.hurry = () => {
        clearTimeout(later);
        done();
      };
    });
  }
}

function tell(state, again = null) {
  if (state === connection.value.state && again === connection.value.again) return;
  connection.set({ state, since: Date.now(), again });
}

/** The events of a stream, which may be cut anywhere. */
async function read(body, heard, emit) {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    text += decoder.decode(value, { stream: true });
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const event = parsed(block);
      if (event) emit(event);
    }
  }
}

function parsed(block) {
  const event = { kind: "message", id: null, data: null };
  let data = "";
  for (const line of block.split("\n")) {
    const at = line.indexOf(": ");
    if (at <= 0) continue;
    const [field, value] = [line.slice(0, at), line.slice(at + 2)];
    if (field === "event") event.kind = value;
    else if (field === "id") event.id = value;
    else if (field === "data") data += value;
  }
  if (!data) return null;
  event.data = decoded(data);
  return event;
}

/** Follow one stream of a path, for instance the changes of a view, until `signal` is aborted. Not shared. */
export async function followed(path, params, onEvent, { signal }) {
  let last = null;
  for (let failed = 0; !signal.aborted; ) {
    try {
      const headers = { Accept: "text/event-stream", ...(last ? { "Last-Event-ID": last } : {}) };
      const found = await ask("GET", path, { params, headers, signal });
      failed = 0;
      await read(found.body, () => {}, (event) => {
        if (event.id) last = event.id;
        onEvent(event);
      });
    } catch (problem) {
      if (signal.aborted) return;
      if (problem instanceof Problem && problem.status >= 400 && problem.status < 500 && problem.status !== 429) throw problem;
    }
    await new Promise((done) => setTimeout(done, Math.min(30_000, 1000 * 2 ** failed++)));
  }
}
