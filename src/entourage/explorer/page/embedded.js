// The source of a page in one file: what the server would answer, read from the page itself.

const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
const floats = (text) => new Float32Array(bytes(text));
const rounded = (value) => Math.round(1e4 * value) / 1e4; // as the server has it
const MOST_FOUND = 30;

/** The source, if this page holds its data; null where a server answers. */
export function embedded() {
  const place = document.getElementById("embedded");
  return place ? sourceOf(JSON.parse(place.textContent)) : null;
}

function sourceOf(data) {
  const { ids, texts, pictures } = data;
  const arrays = {};
  for (const [name, { width, real, values }] of Object.entries(data.items)) {
    if (values !== undefined) arrays[name] = { width, values: real ? floats(values) : new Int32Array(bytes(values)) };
  }
  const codes = data.labels && new Int32Array(bytes(data.labels));
  const scores = data.scores && [floats(data.scores.before), floats(data.scores.after)];
  const line = (name, row) => Array.from(arrays[name].values.subarray(row * arrays[name].width, (row + 1) * arrays[name].width), rounded);
  const nameOf = (row) => ({ id: ids[row], text: texts ? texts[row] : null });
  const namesOf = (rows) => Object.fromEntries(rows.map((row) => [row, nameOf(row)]));
  const label = (row) => (codes && codes[row] >= 0 ? data.scene.labels[codes[row]] : "");

  function ranking(when, row) {
    const rows = line(`${when}_rows`, row);
    const known = rows.map((_, at) => at).filter((at) => rows[at] >= 0);
    const of = (name) => known.map((at) => line(`${when}_${name}`, row)[at]);
    return { rows: of("rows"), similarities: of("similarities"), others: of("others"), right: of("right") };
  }

  function attention(row) {
    if (!arrays.attention_rows) return null;
    const fields = Object.fromEntries(["rows", "weights", "trust", "shared", "mine", "theirs"].map((name) => [name, line(`attention_${name}`, row)]));
    return { ...fields, weights: [fields.weights], steps: data.items.steps, length: fields.rows.length };
  }

  function item(row) {
    if (!(row >= 0 && row < ids.length)) throw new Error(`There is no item ${row}.`);
    const [before, after, looked] = [ranking("before", row), ranking("after", row), attention(row)];
    const mentioned = [row, ...before.rows, ...after.rows, ...(looked?.rows ?? [])];
    const scored = scores && row < data.scene.items ? scores.map((each) => rounded(each[row])) : null;
    return { row, scores: scored, attention: looked, before, after, names: namesOf(mentioned) };
  }

  function search(words) {
    const wanted = words.toLowerCase();
    const labels = (data.scene.labels ?? []).map((name, code) => [name.toLowerCase().indexOf(wanted), code]);
    const found = labels.filter(([at]) => at >= 0).sort((one, other) => one[0] - other[0] || one[1] - other[1]);
    const rows = ids.map((_, row) => row).filter((row) => ids[row].toLowerCase().includes(wanted) || texts?.[row]?.toLowerCase().includes(wanted));
    rows.sort((one, other) => (ids[other].toLowerCase() === wanted) - (ids[one].toLowerCase() === wanted) || ids[one].length - ids[other].length);
    const first = rows.slice(0, MOST_FOUND);
    return { labels: found.slice(0, 8).map(([, code]) => code), rows: first, names: namesOf(first) };
  }

  const tables = {
    suspects: () => table(["id", "label", "suggested_label", "share_of_trust"], data.suspects.suspects.map(({ row, suggested, share }) => [ids[row], label(row), data.scene.labels[suggested], share])),
    copies: () => table(["id", "label", "other_id", "other_label"], data.suspects.copies.map(([one, other]) => [ids[one], label(one), ids[other], label(other)])),
  };

  return {
    live: false,
    progress: async () => ({ ready: true }),
    scene: async () => data.scene,
    places: async () => floats(data.places),
    labels: async () => codes,
    column: async (name) => floats(data.columns[name]),
    item: async (row) => item(row),
    names: async (rows) => namesOf(rows),
    search: async (words) => search(words),
    picture: (row) => pictures?.[row] ?? "data:,",
    overview: async () => data.overview,
    doctor: async () => data.doctor,
    suspects: async () => data.suspects,
    csv: async (name) => tables[name](),
    ids: async (rows) => table(["id", "label"], Array.from(rows, (row) => [ids[row], label(row)])),
  };
}

/** Lines as .csv; what a spreadsheet would take for a formula is made a text. */
function table(head, lines) {
  const cell = (value) => {
    const text = typeof value === "string" && /^([=+@\t\r\n]|-(?![\d.]+$))/.test(value) ? `'${value}` : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [head, ...lines].map((line) => `${line.map(cell).join(",")}\n`).join("");
}
