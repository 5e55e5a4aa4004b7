// The shell around the pages: where we are, which database, who asks, whether what is shown is alive.

import { api, Problem, connection, currentDatabase, dismissSignIn, follow, forgetToken, hasToken, identity, reconnect, signIn, useToken } from "./api.js";
import { Badge, Button, Busy, Dialog, Empty, Failure, Field, Icon, carry, classes, go, html, link, render, toasts, useData, useEffect, useEvents, useGathered, useNow, useRef, useState, useStore } from "./ui.js";

const PAGES = [
  { name: "graph", title: "Graph" },
  { name: "epochs", title: "Epochs" },
  { name: "sql", title: "SQL" },
  { name: "models", title: "Models" },
  { name: "alerts", title: "Alerts" },
  { name: "settings", title: "Settings", file: "admin" },
];
const HIDDEN = [{ name: "view", title: "View", under: "graph" }];

/** #/view/totals?tab=rows -> {name: "view", parts: ["totals"], params: {tab: "rows"}} */
function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...parts] = path.split("/").filter(Boolean).map(decoded);
  return { name: name || "graph", parts, params: Object.fromEntries(new URLSearchParams(query || "")) };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function usePlace() {
  const [at, set] = useState(place);
  useEffect(() => {
    const moved = () => set(place());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return at;
}

/** A page's module, and its styles, once they are there. */
const loaded = new Map();
function load(page) {
  if (!loaded.has(page.name)) {
    const file = `./pages/${page.file || page.name}.js`;
    loaded.set(page.name, import(file).then(async (module) => (await styled(module.styles), module)));
    loaded.get(page.name).catch(() => loaded.delete(page.name));
  }
  return loaded.get(page.name);
}

function styled(files = []) {
  const missing = [files].flat().filter((file) => !document.querySelector(`link[href="${file}"]`));
  return Promise.all(
    missing.map(
      (href) =>
        new Promise((done) => {
          const sheet = Object.assign(document.createElement("link"), { rel: "stylesheet", href, onload: done, onerror: done });
          document.head.append(sheet);
        }),
    ),
  );
}

function App() {
  const at = usePlace();
  const asked = useData(start, []);
  const databases = asked.data?.result ?? [];
  const database = databases.includes(at.params.database) ? at.params.database : (databases[0] ?? null);
  currentDatabase.set(database);
  carry(databases.length > 1 ? { database } : {});
  useEffect(() => database && follow(), [database]);
  const page = [...PAGES, ...HIDDEN].find((one) => one.name === at.name);
  useEffect(() => {
    document.title = `${[at.parts[0], page?.title].filter(Boolean).join(" · ") || "Not found"} · Penstock`;
  }, [page, at.parts[0]]);
  const main = useRef();
  const skip = (event) => {
    event.preventDefault();
    main.current.focus();
  };
  return html`<a class="skip" href="#main" onClick=${skip}>Skip to the page</a>
    <${Header} at=${at} page=${page} databases=${databases} database=${database} version=${asked.data?.version} />
    <main id="main" tabindex="-1" ref=${main}>
      ${asked.problem
        ? html`<${Failure} problem=${asked.problem} again=${asked.reload} />`
        : !asked.data
          ? html`<${Busy} />`
          : !database
            ? html`<${Empty} title="No database"><p>Your token may see none of this server's databases.</p><//>`
            : !page
              ? html`<${Empty} title="No such page"><p><a href=${link("graph")}>To the graph</a></p><//>`
              : html`<${Page} key=${`${page.name} ${database}`} page=${page} at=${at} database=${database} />`}
    </main>
    <${SignIn} /><${Toasts} />`;
}

async function start() {
  const who = await api.get("whoami");
  identity.set(who);
  return api.get("databases");
}

function Page({ page, at, database }) {
  const module = useData(() => load(page), [page]);
  const role = useStore(identity)?.role ?? "read";
  if (module.problem) {
    const problem = new Problem(0, { detail: `the page ${page.title} cannot be loaded.`, help: "Load the Studio again; the server may have been replaced." });
    return html`<${Failure} problem=${problem} again=${module.reload} />`;
  }
  if (!module.data) return html`<${Busy} />`;
  return html`<${module.data.default} parts=${at.parts} params=${at.params} database=${database} role=${role} />`;
}

// -- the header -------------------------------------------------------------------------------------------------------

function Header({ at, page, databases, database, version }) {
  const here = page?.under ?? page?.name;
  const choose = (event) => {
    const params = { ...at.params, database: event.target.value };
    go(here === at.name && !at.parts.length ? at.name : "graph", params);
  };
  return html`<header class="top">
    <a class="brand" href=${link("graph")} title=${version ? `Penstock ${version}` : "Penstock"}><img src="icon.svg" alt="" width="22" height="22" /><span>Penstock</span></a>
    ${databases.length > 1
      ? html`<select class="database" aria-label="Database" value=${database} onChange=${choose}>${databases.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select>`
      : database && html`<span class="database one">${database}</span>`}
    <nav class="pages" aria-label="Pages">
      ${PAGES.map(
        (one) => html`<a key=${one.name} href=${link(one.name)} aria-current=${one.name === here ? "page" : undefined}>
          <${Icon} name=${one.name} size=${18} /><span>${one.title}</span>${one.name === "alerts" && database && html`<${AlertCount} key=${database} />`}</a>`,
      )}
    </nav>
    <div class="top-end"><${Connection} /><${Who} /><${Theme} /></div>
  </header>`;
}

/** How many alerts go on. */
function AlertCount() {
  const alerts = useData((signal) => api.get("alerts", { limit: 1000 }, { signal }), []);
  const again = useGathered(alerts.reload);
  useEvents((event) => (event.kind === "alert" || event.kind === "gap") && again());
  const open = (alerts.data?.result ?? []).filter((one) => !one.cleared_at).length;
  return open ? html`<span class="count" aria-label=${`${open} open`}>${open}</span>` : null;
}

function Connection() {
  const { state, again } = useStore(connection);
  const now = useNow();
  if (state === "off") return null;
  const words = { live: "Live", connecting: "Connecting", waiting: "Not connected" };
  const seconds = again ? Math.max(0, Math.ceil((again - now) / 1000)) : 0;
  return html`<span class=${classes("connection", state)} role="status" title=${state === "live" ? "Events of this server arrive as they happen" : "What is shown may be old"}>
    <i aria-hidden="true" /><span>${words[state]}</span>
    ${state === "waiting" && html`<button type="button" class="textual" onClick=${reconnect}>Try now<span class="dim"> (${seconds} s)</span></button>`}</span>`;
}

function Who() {
  const who = useStore(identity);
  if (!who) return null;
  return html`<span class="who" title=${`${who.user}: role ${who.role}`}><span class="who-name">${who.user}</span> <${Badge}>${who.role}<//>
    ${hasToken() && html`<${Button} kind="quiet" icon="out" label="Sign out" onClick=${forgetToken} />`}</span>`;
}

const THEMES = [
  { value: "auto", title: "System", icon: "auto" },
  { value: "light", title: "Light", icon: "sun" },
  { value: "dark", title: "Dark", icon: "moon" },
];

function Theme() {
  const [theme, set] = useState(document.documentElement.dataset.theme ?? "auto");
  const at = THEMES.findIndex((one) => one.value === theme);
  const next = () => {
    const chosen = THEMES[(at + 1) % THEMES.length].value;
    if (chosen === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    try {
      localStorage.setItem("penstock.theme", chosen);
    } catch {
      // it holds as long as the page is open
    }
    set(chosen);
    dispatchEvent(new Event("theme"));
  };
  return html`<${Button} kind="quiet" icon=${THEMES[at].icon} label=${`Theme: ${THEMES[at].title}`} onClick=${next} />`;
}

// -- signing in, and toasts -------------------------------------------------------------------------------------------

function SignIn() {
  const why = useStore(signIn);
  const [text, setText] = useState("");
  const [kept, setKept] = useState(false);
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  if (why === null) return null;
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await useToken(text.trim(), kept);
      setText("");
      setProblem(null);
    } catch (raised) {
      setProblem(raised instanceof Problem ? raised : new Problem(0, { detail: "the server does not answer.", help: "Try again." }));
    }
    setBusy(false);
  };
  return html`<${Dialog} title="Sign in" onClose=${dismissSignIn} class="sign-in">
    <p>${why} What you were doing stays as it is.</p>
    <form onSubmit=${submit}>
      <${Field} label="Token" hint="penstock token create makes one. It stays in this page's memory.">
        ${(id) => html`<input id=${id} type="password" autocomplete="off" spellcheck="false" autofocus value=${text} onInput=${(event) => setText(event.target.value)} required />`}
      <//>
      <label class="check"><input type="checkbox" checked=${kept} onChange=${(event) => setKept(event.target.checked)} /> Keep it until this tab is closed</label>
      ${problem && html`<${Failure} problem=${problem} />`}
      <div class="dialog-ends"><${Button} onClick=${dismissSignIn}>Not now<//><${Button} type="submit" kind="main" icon="key" busy=${busy}>Sign in<//></div>
    </form>
  <//>`;
}

function Toasts() {
  const [list, set] = useState(toasts.list);
  useEffect(() => {
    toasts.watchers.add(set);
    return () => toasts.watchers.delete(set);
  }, []);
  return html`<div class="toasts" role="log" aria-live="polite" aria-label="Messages">
    ${list.map((one) => html`<div key=${one.id} class=${classes("toast", one.kind)}><span>${one.text}</span><${Button} kind="quiet" icon="close" label="Close" onClick=${one.drop} /></div>`)}
  </div>`;
}

render(html`<${App} />`, document.getElementById("app"));
