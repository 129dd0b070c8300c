// What several views share: code with copy buttons, work with progress, places to drop files.
import { ask, startJob, upload } from "./api.js";
import { fresh, h, notice, scroll } from "./dom.js";

export function codeBox({ python, command }, what = "this") {
  const block = (name, text) => {
    const said = h("span", { class: "hint", role: "status" });
    const copy = async () => {
      try { await navigator.clipboard.writeText(text); said.textContent = "copied "; }
      catch { said.textContent = "select the text to copy it "; }
      setTimeout(() => { said.textContent = ""; }, 2500);
    };
    return [
      h("div", { class: "codehead" }, h("h3", {}, name),
        h("span", {}, said, h("button", { type: "button", class: "quiet small", "aria-label": `Copy: ${name}`, on: { click: copy } }, "Copy"))),
      h("pre", { tabindex: 0, "aria-label": name }, text),
    ];
  };
  return h("section", { class: "card code", "aria-label": `Code for ${what}` }, h("h2", {}, "The same answer elsewhere"), block("Python", python), block("Command", command));
}

// Shows a task's progress in `place`, then what `show` makes of its result.
export function work(place, task, args, show) {
  place.job?.cancel();
  const message = h("span", {}, "starting …"), seconds = h("span", { class: "muted" });
  const started = performance.now();
  const clock = setInterval(() => { seconds.textContent = `${((performance.now() - started) / 1000).toFixed(0)} s`; }, 500);
  const job = startJob(task, args, (now) => { message.textContent = now.message; });
  place.job = job;
  const panel = h("div", { class: "working", role: "status" }, h("progress", { "aria-label": "working" }),
    h("p", { class: "row" }, message, seconds, h("button", { type: "button", class: "quiet small", on: { click: () => job.cancel() } }, "Cancel")));
  const patience = setTimeout(() => { if (place.job === job) place.replaceChildren(panel); }, place.childElementCount ? 400 : 0);
  return job.result
    .then((result) => { if (place.job === job) place.replaceChildren(...[show(result)].flat()); return result; })
    .catch((error) => { if (place.job === job) place.replaceChildren(notice(error.state === "cancelled" ? "warn" : "bad", error.message)); })
    .finally(() => { clearInterval(clock); clearTimeout(patience); if (place.job === job) place.job = null; });
}

// A place to drop files, or to choose them with the keyboard.
export function dropZone(text, kinds, onFile) {
  const said = h("div", {});
  const take = async (files) => {
    said.replaceChildren();
    for (const file of files) {
      try {
        const kept = await upload(file);
        if (!kinds.includes(kept.kind)) throw new Error(`${kept.name} is of the kind ${kept.kind}; wanted here: ${kinds.join(", ")}.`);
        onFile(kept);
      } catch (error) { said.append(notice("bad", error.message)); }
    }
  };
  const input = h("input", { type: "file", multiple: true, id: fresh("drop"), on: { change: () => { take([...input.files]); input.value = ""; } } });
  const zone = h("div", {
    class: "drop",
    on: {
      dragover: (event) => { event.preventDefault(); zone.classList.add("over"); },
      dragleave: () => zone.classList.remove("over"),
      drop: (event) => { event.preventDefault(); zone.classList.remove("over"); take([...event.dataTransfer.files]); },
    },
  }, text, h("br"), h("label", { for: input.id }, input, h("span", {}, "choose a file")), said);
  return zone;
}

// What a view shows, as far as the address says, and the other way round: what is not usual.
export const fromAddress = (usual, parameters) => ({ ...usual, ...Object.fromEntries([...parameters].filter(([key]) => key in usual)) });
export const toAddress = (usual, values) => Object.fromEntries(Object.entries(values).filter(([key, value]) => value !== usual[key]));

// Runs one question at a time: of those asked meanwhile, only the last.
export function latest(run) {
  let busy = false, next = null;
  return async (...asked) => {
    next = asked;
    if (busy) return;
    busy = true;
    while (next) { const now = next; next = null; await run(...now); }
    busy = false;
  };
}

export const sessionFiles = async (...kinds) => (await ask("/api/session")).files.filter((file) => kinds.includes(file.kind));

// The text as it came: JavaScript would write 1.0 as 1, and a certificate's checksum would not fit.
export function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 5000);
}

export function table(columns, rows, caption) {
  return scroll(caption,
    h("table", {}, h("caption", { class: "visually-hidden" }, caption),
      h("thead", {}, h("tr", {}, columns.map((c) => h("th", { scope: "col" }, c)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell)))))));
}

let plotly;
// plotly.js is large: it is loaded with the first view that draws with it.
export function loadPlotly() {
  plotly ??= new Promise((resolve, reject) => {
    const script = h("script", { src: "/plotly.js" });
    script.addEventListener("load", () => resolve(window.Plotly));
    script.addEventListener("error", () => reject(new Error("plotly.js could not be loaded.")));
    document.head.append(script);
  });
  return plotly;
}

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
