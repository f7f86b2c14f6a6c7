// What is dropped or pasted on the page, refined against the gallery and ranked.

import { byId } from "./dom.js";
import { settingsOf } from "./methods.js";

const LONGEST = 500; // letters of a text that becomes part of the address

/** What can be dropped on a scene, in words. */
export function takes({ encoder, kind }) {
  const vectors = "vectors (.npy, .npz, .parquet)";
  return !encoder ? vectors : kind === "texts" ? `a text or ${vectors}` : kind === "pictures" ? `a picture or ${vectors}` : `a picture, a text or ${vectors}`;
}

/**
 * Take files and texts that are dropped or pasted; found(answer, text) with what the server says of them, and the text
 * if it was a short one.
 */
export function takeDrops(page, found) {
  const cover = byId("drop");
  let last = null;

  async function send(body, name) {
    cover.hidden = true;
    page.busy(true);
    try {
      const settings = settingsOf(page.state.value, page.data.scene);
      const answer = await page.source.queries(body, name, settings);
      last = { body, name };
      found(answer, typeof body === "string" && body.length <= LONGEST ? body : undefined);
    } catch (error) {
      page.failed(error);
    } finally {
      page.busy(false);
    }
  }

  if (page.source.live) {
    cover.firstElementChild.textContent = `Drop ${takes(page.data.scene)}`;
    byId("ask").title = `Search with something of your own: choose a file, drop or paste ${takes(page.data.scene)}`;
    addEventListener("dragover", (event) => {
      event.preventDefault();
      cover.hidden = false;
    });
    addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) cover.hidden = true;
    });
    addEventListener("drop", (event) => {
      event.preventDefault();
      cover.hidden = true;
      const [file] = event.dataTransfer.files;
      if (file) send(file, file.name);
      else if (event.dataTransfer.getData("text/plain")) send(event.dataTransfer.getData("text/plain"), "");
    });
    addEventListener("paste", (event) => {
      if (event.target.closest?.("input, textarea")) return;
      const [file] = event.clipboardData.files;
      if (file) send(file, file.name || "pasted.png");
      else if (event.clipboardData.getData("text/plain").trim()) send(event.clipboardData.getData("text/plain"), "");
    });
    byId("ask").addEventListener("click", () => byId("file").click());
    byId("file").addEventListener("change", () => {
      const [file] = byId("file").files;
      if (file) send(file, file.name);
      byId("file").value = "";
    });
  }
  /** `again`: with other settings. `forget`: what was asked last; gives null. */
  return { ask: (text) => send(text, ""), again: () => last && send(last.body, last.name), forget: () => (last = null) };
}
