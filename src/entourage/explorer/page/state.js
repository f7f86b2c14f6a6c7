// What is shown, as one value that is also the address: reload, share and Back all work by it.

const NUMBERS = ["item", "t", "label", "k", "steps", "blend", "x", "y", "zoom"];
const TEXTS = ["view", "colour", "method", "theme", "region", "ask"];
const FLAGS = ["worse"];

/** What the fragment of an address says: #item=3&t=2.5 as {item: 3, t: 2.5}. */
export function read(fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const state = {};
  for (const name of NUMBERS) if (given.has(name) && isFinite(given.get(name))) state[name] = Number(given.get(name));
  for (const name of TEXTS) if (given.get(name)) state[name] = given.get(name);
  for (const name of FLAGS) if (given.get(name) === "1") state[name] = true;
  return state;
}

/** The fragment that says this. */
export function write(state) {
  const given = new URLSearchParams();
  for (const name of [...TEXTS, ...NUMBERS, ...FLAGS]) {
    const value = state[name];
    if (value === undefined || value === null || value === false || value === "") continue;
    given.set(name, value === true ? "1" : typeof value === "number" ? String(Number(value.toFixed(4))) : value);
  }
  return `#${given}`;
}

/** The state of the page; listeners are told what changed. */
export class State {
  constructor() {
    this.value = read(location.hash);
    this.listeners = [];
    addEventListener("popstate", () => this.#became(read(location.hash)));
    addEventListener("hashchange", () => this.#became(read(location.hash)));
  }

  /** Call listener(value, changed names) after every change. */
  listen(listener) {
    this.listeners.push(listener);
  }

  /** Change some of it. What is a place one would go back to is a new entry of the history. */
  set(changes, { entry = true } = {}) {
    const next = { ...this.value, ...changes };
    const fragment = write(next);
    if (fragment !== write(this.value)) {
      if (entry) history.pushState(null, "", fragment);
      else history.replaceState(null, "", fragment);
    }
    this.#became(next);
  }

  #became(next) {
    const before = this.value;
    const names = [...new Set([...Object.keys(before), ...Object.keys(next)])];
    const changed = new Set(names.filter((name) => before[name] !== next[name]));
    this.value = next;
    if (changed.size) for (const listener of this.listeners) listener(next, changed);
  }
}
