// Where everything comes from: the server this page was loaded from. In a page of one file, embedded.js stands in for it.

/** A request was refused; the message says why. */
export class Refused extends Error {}

async function asked(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Refused("The server does not answer; is `entourage explore` still running?");
  }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => ({}));
  throw new Refused(typeof told.detail === "string" ? told.detail : `The server answered ${answer.status}.`);
}

const json = async (path, options) => (await asked(path, options)).json();
const floats = async (path) => new Float32Array(await (await asked(path)).arrayBuffer());

const settingsOf = ({ method, k, steps, blend }) => new URLSearchParams({ method, k, steps, blend }).toString();

let stamp = ""; // of the run: pictures are kept by the browser, and another run may follow at the same address

/** The server as a source. */
export const server = {
  live: true,
  progress: () => json("api/progress"),
  scene: async () => {
    const told = await json("api/scene");
    stamp = told.stamp;
    return told;
  },
  places: () => floats("api/places"),
  labels: async () => new Int32Array(await (await asked("api/labels")).arrayBuffer()),
  column: (name) => floats(`api/columns/${encodeURIComponent(name)}`),
  item: (row, settings) => json(`api/items/${row}${settings ? `?${settingsOf(settings)}` : ""}`),
  names: (rows) => json(`api/names?rows=${rows.join(",")}`),
  search: (words) => json(`api/search?q=${encodeURIComponent(words)}`),
  picture: (row) => `api/pictures/${row}?of=${stamp}`,
  overview: () => json("api/overview"),
  doctor: () => json("api/doctor"),
  suspects: () => json("api/suspects"),
  csv: async (name) => (await asked(`api/${name}.csv`)).text(),
  ids: async (rows) => (await asked("api/ids.csv", { method: "POST", body: Int32Array.from(rows) })).text(),
  queries: (body, name, settings) => {
    const how = settings ? `&${settingsOf(settings)}` : "";
    return json(`api/queries?name=${encodeURIComponent(name)}${how}`, { method: "POST", body });
  },
};
