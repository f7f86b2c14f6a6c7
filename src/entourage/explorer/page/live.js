// What is dropped or pasted on the page, refined against the gallery and ranked.

import { byId } from "./dom.js";
import { settingsOf } from "./methods.js";

/** Take files and texts that are dropped or pasted; found(answer) with what the server says of them. */
export function takeDrops(page, found) {
  const cover = byId("drop");
  let last = null;

  async function send(body, name) {
    last = { body, name };
    cover.hidden = true;
    page.busy(true);
    try {
      const settings = settingsOf(page.state.value, page.data.scene);
      found(await page.source.queries(body, name, settings), name);
    } catch (error) {
      last = null;
      page.failed(error);
    } finally {
      page.busy(false);
    }
  }

  if (page.source.live) {
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
  /** Ask again with other settings. */
  return { ask: (text) => send(text, ""), again: () => last && send(last.body, last.name), forget: () => (last = null) };
}
