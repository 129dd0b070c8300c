// Fiber: a walk along weights with one function, and whether two files have the same function.
import { compact, debounce, field, h, indexed, notice, scroll } from "./dom.js";
import { heatMap } from "./heatmap.js";
import { architectureControls, architectureOf } from "./network.js";
import { codeBox, dropZone, fromAddress, sessionFiles, table, toAddress, work } from "./parts.js";

const DEFAULTS = { widths: "3,2", ranks: "2", tokens: "4", attention: "softmax", heads: "1", value_ranks: "2", skip: "none", mask: "none", temperature: "1", seed: "0", condition: "4", steps: "24" };

export async function render(root, parameters, remember) {
  const values = fromAddress(DEFAULTS, parameters);
  const walk = h("div", { class: "stack" }), pair = [], chosen = h("p", { class: "muted" }, "No file yet."), compared = h("div", { class: "stack", "aria-live": "polite" });
  const start = () => {
    remember(toAddress(DEFAULTS, values));
    work(walk, "walk", { architecture: architectureOf(values), seed: Number(values.seed), condition: Number(values.condition), steps: Number(values.steps) }, showWalk);
  };
  const changed = debounce(start, 350);
  const number = (name, min, max) => h("input", { type: "number", min, max, value: values[name], on: { input: (event) => { values[name] = event.target.value; changed(); } } });
  const compare = () => {
    const files = { first: pair[0].id, second: pair[1].id };
    work(compared, "same", { files }, (result) => showComparison(result, () => { work(walk, "walk-files", { files, steps: Number(values.steps) }, showWalk); walk.scrollIntoView(); }));
  };
  const take = (file) => {
    pair.push(file);
    if (pair.length > 2) pair.shift();
    chosen.textContent = pair.map((one) => one.name).join(" and ") + (pair.length === 1 ? ": one more." : "");
    if (pair.length === 2) compare();
  };
  root.replaceChildren(
    h("h1", {}, "Which weights have the same function?"),
    h("p", { class: "lead" }, "A walk along a fiber: the weights change all the way, and the function does not. Move the slider, or use the arrow keys on it."),
    h("div", { class: "columns" },
      h("div", { class: "stack" },
        h("form", { class: "card controls", "aria-label": "the network", on: { submit: (event) => event.preventDefault() } }, architectureControls(values, changed, { readout: false }), field("Condition", number("condition", 1, 1000), "of the change of basis"), field("Steps", number("steps", 1, 60))),
        h("section", { class: "card" }, h("h2", {}, "Two weights files"), dropZone("Drop two weights files: same function or not?", ["weights"], take), chosen)),
      h("div", { class: "stack" }, compared, walk)),
  );
  const named = await sessionFiles("weights");
  if (named.length >= 2) named.slice(-2).forEach(take);
  start();
}

function showWalk(result) {
  if (!result.found) return [h("section", { class: "card" }, h("h2", {}, result.name), notice("warn", result.sentence)), codeBox(result.code, "the walk")];
  const last = result.deviations.length - 1;
  const slider = h("input", { type: "range", min: 0, max: last, value: 0, step: 1, "aria-label": "step of the walk" });
  const where = h("b", {}), deviation = h("b", {});
  const panels = result.panels.map((panel) => {
    const scale = Math.max(...panel.frames.flat().map(Math.abs), 1e-12);
    const map = heatMap(panel.rows, panel.columns, scale, `${panel.title}, ${panel.rows} by ${panel.columns}`);
    const now = h("p", {});
    const first = panel.frames[0], size = Math.hypot(...first) || 1;
    const show = (step) => {
      map.update(panel.frames[step]);
      const moved = Math.hypot(...panel.frames[step].map((x, k) => x - first[k])) / size;
      now.textContent = panel.stays ? `stays: at most ${compact(panel.change)} over the whole walk` : `changed by ${(100 * moved).toFixed(0)} %${panel.stays_up_to_scale ? ", a multiple of itself" : ""}`;
    };
    return { panel, show, element: h("div", { class: "panel" }, h("h3", {}, panel.title), map.element, now) };
  });
  const show = () => {
    const step = Number(slider.value);
    where.textContent = `${step} of ${last}`;
    deviation.textContent = result.deviations[step] ? result.deviations[step].toExponential(1) : "0";
    for (const panel of panels) panel.show(step);
  };
  slider.addEventListener("input", show);
  let timer = null;
  const play = h("button", { type: "button", class: "quiet small", on: { click: () => {
    if (timer) { clearInterval(timer); timer = null; play.textContent = "Play"; return; }
    play.textContent = "Stop";
    timer = setInterval(() => { if (!slider.isConnected) clearInterval(timer); slider.value = String((Number(slider.value) + 1) % (last + 1)); show(); }, 160);
  } } }, "Play");
  show();
  const group = (title, hint, wanted) => { const here = panels.filter(wanted); return here.length ? h("section", { class: "card" }, h("h2", {}, title), h("p", { class: "hint" }, hint), h("div", { class: "panels" }, here.map((panel) => panel.element))) : null; };
  return [
    h("section", { class: "card" }, h("h2", {}, result.name), h("p", { class: "row" }, h("span", {}, "step ", where), h("span", {}, "outputs differ from the start by ", deviation), play), slider, h("p", { class: "hint" }, result.sentence)),
    group("What stays", "Sorted by measurement: these move by rounding only.", ({ panel }) => panel.stays),
    group("What changes", "The weights, and what is known up to a scale or a basis only.", ({ panel }) => !panel.stays),
    codeBox(result.code, "the walk"),
  ].filter(Boolean);
}

const matrixTable = (name, matrix) => h("div", { class: "panel" }, h("h3", {}, name), scroll(name, h("table", {}, h("tbody", {}, matrix.map((row) => h("tr", {}, row.map((x) => h("td", { class: "number" }, compact(+x.toPrecision(3))))))))));

function showComparison(result, walkThere) {
  const kind = { same: "good", different: "bad", undecided: "warn" }[result.verdict];
  const mark = { same: "✓ same function", different: "✗ different functions", undecided: "? undecided" }[result.verdict];
  return [
    h("section", { class: "card" }, h("p", {}, h("span", { class: `chip ${kind}` }, mark)), h("p", {}, indexed(result.sentence)),
      result.transport ? h("p", { class: "row" }, h("button", { type: "button", class: "quiet", on: { click: walkThere } }, "Walk from one to the other")) : null,
      result.element ? h("details", {}, h("summary", {}, "The symmetry that carries the first to the second"), Object.entries(result.element).filter(([, parts]) => Array.isArray(parts) && parts.length).map(([name, parts]) => h("div", {}, h("h3", {}, name.replace("_", "-")), h("pre", { tabindex: 0 }, JSON.stringify(parts))))) : null,
      result.witness ? h("div", {}, h("h2", {}, "An input that tells them apart"), h("div", { class: "panels wide" }, matrixTable("input X", result.witness.input), matrixTable("first output", result.witness.outputs[0]), matrixTable("second output", result.witness.outputs[1]))) : null,
      table(["error", "tolerance", "inputs", "seed"], [[compact(result.error), compact(result.tolerance), result.inputs, result.seed]], "how it was decided")),
    codeBox(result.code, "the comparison"),
  ];
}
