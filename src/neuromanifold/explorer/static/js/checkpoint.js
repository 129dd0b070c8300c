// Checkpoint: a real model, what its function does not see, and every head; two side by side.
import { choice, compact, field, h, notice, s, scroll } from "./dom.js";
import { codeBox, dropZone, sessionFiles, table, work } from "./parts.js";

const SHOWN = {
  "query–key: stable rank": (head) => stableRank(head.query_key),
  "value–output: stable rank": (head) => stableRank(head.value_output),
  "query–key: largest singular value": (head) => head.query_key.values[0] ?? 0,
  "value–output: largest singular value": (head) => head.value_output.values[0] ?? 0,
  "imbalance of the factors": (head) => imbalance(head),
};

// The sum of the squares of the singular values over the largest square: how many directions count.
const stableRank = ({ values }) => (values[0] ? values.reduce((sum, x) => sum + x * x, 0) / values[0] ** 2 : 0);

const imbalance = (head) => Math.max(head.balance_query_key, head.balance_value_output);

export async function render(root, parameters, remember) {
  let files = await sessionFiles("checkpoint");
  const values = { first: parameters.get("first") ?? files[0]?.name ?? "", second: parameters.get("second") ?? "none", readout: parameters.get("readout") ?? "logits", show: parameters.get("show") in SHOWN ? parameters.get("show") : Object.keys(SHOWN)[0] };
  const sides = [h("div", { class: "stack" }), h("div", { class: "stack" })], between = h("div", { class: "stack" }), controls = h("form", { class: "card controls", "aria-label": "which model", on: { submit: (event) => event.preventDefault() } });
  const results = [null, null];
  const named = (name) => files.findLast((one) => one.name === name);
  const draw = () => sides.forEach((side, k) => { if (results[k]) side.replaceChildren(...showAudit(results[k], values.show)); });
  const start = () => {
    remember(values);
    [values.first, values.second].forEach((name, k) => {
      const file = named(name);
      results[k] = null;
      sides[k].job?.cancel();
      if (file) work(sides[k], "audit", { files: { model: file.id }, readout: values.readout }, (result) => { results[k] = result; return showAudit(result, values.show); });
      else sides[k].replaceChildren(...(k ? [] : [notice("info", "Name a model on the command line: neuromanifold explore my-model/ (a folder with config.json), or drop a GGUF file here. Nothing is downloaded.")]));
    });
    between.job?.cancel();
    between.replaceChildren();
    const [first, second] = [named(values.first), named(values.second)];
    if (first && second) work(between, "compare", { files: { first: first.id, second: second.id } }, showComparison);
  };
  const drawControls = () => {
    const names = [...new Set(files.map((one) => one.name))], set = (name) => (value) => { values[name] = value; start(); };
    controls.replaceChildren(...[
      names.length ? field("Model", choice(names, values.first, set("first"))) : null, names.length ? field("Beside it", choice(["none", ...names], values.second, set("second"))) : null,
      field("Readout", choice(["logits", "probabilities"], values.readout, set("readout"))),
      field("Show", choice(Object.keys(SHOWN), values.show, (value) => { values.show = value; remember(values); draw(); })),
      h("div", { class: "wide" }, dropZone("Drop a model that is one file (GGUF).", ["checkpoint"], (kept) => { files.push(kept); if (!files.some((one) => one.name === values.first)) values.first = kept.name; else values.second = kept.name; drawControls(); start(); }))].filter(Boolean));
  };
  root.replaceChildren(
    h("h1", {}, "What does a real model not use?"),
    h("p", { class: "lead" }, "The weights of a transformer hold bases that its function does not see. This counts them part by part, and looks at every head as the function sees it."),
    h("div", { class: "columns" }, controls, h("div", { class: "stack" }, between, h("div", { class: "pair" }, sides))));
  drawControls();
  start();
}

function showComparison(found) {
  const cell = (value, layer, head) => h("span", { class: "cell", style: shade(value / found.unrelated), title: `layer ${layer}, head ${head}` }, compact(+value.toPrecision(2)));
  const map = (title, read) => headTable(`${title}; layers down, heads across`, found.layers.map((layer) => [layer.layer, read(layer)]), cell);
  const changed = (layer) => layer.heads.filter((head, k) => head !== k).length;
  return [
    h("section", { class: "card" }, h("h2", {}, `${found.names[0]} beside ${found.names[1]}`), h("p", {}, found.sentence),
      h("p", { class: "hint" }, `Heads, neurons and the stream (${found.stream}) are matched first, so no change of basis counts. Distances are relative: 0 equal, ${compact(found.unrelated)} unrelated.`),
      h("div", { class: "pair" }, map("Scores, query–key", (layer) => layer.scores), map("Writing, value–output", (layer) => layer.writes)),
      table(["layer", "MLP", "heads that changed places", "neurons", "beyond rounding"], found.layers.map((layer) => [layer.layer, compact(layer.mlp === null ? null : +layer.mlp.toPrecision(2)), changed(layer), layer.neurons, layer.unchanged ? "nothing" : "changed"]), "distances by layer")),
    codeBox(found.code, "the comparison"),
  ];
}

// Layers × heads, one cell for each.
function headTable(caption, layers, cell) {
  const heads = Math.max(...layers.map(([, here]) => here.length));
  return scroll(caption, h("table", { class: "heat" }, h("caption", { class: "hint" }, caption),
    h("thead", {}, h("tr", {}, h("td", {}), Array.from({ length: heads }, (_, k) => h("th", { scope: "col" }, k)))),
    h("tbody", {}, layers.map(([layer, here]) => h("tr", {}, h("th", { scope: "row" }, layer), here.map((one, k) => h("td", {}, cell(one, layer, k))))))));
}
const shade = (amount) => ({ background: `color-mix(in oklab, #6fa8dc ${Math.round(90 * Math.min(1, amount))}%, #f4f6f9)` });

function showAudit(found, show) {
  const share = found.redundant === null ? null : (100 * found.redundant) / found.parameters, eps = found.eps_parts.filter((part) => part.dimension);
  const spectrum = h("div", { "aria-live": "polite" }, h("p", { class: "hint" }, "Choose a head for its singular values."));
  return [
    h("section", { class: "card" }, h("h2", {}, found.name),
      h("div", { class: "row" }, h("span", { class: "big" }, share === null ? "not covered" : `${share.toPrecision(3)} %`), h("span", {}, share === null ? "" : `of ${compact(found.parameters)} parameters are redundant`)),
      h("p", {}, found.sentence), found.unmet.length ? h("ul", {}, found.unmet.map((text) => h("li", {}, text))) : null,
      table(["part", "redundant", "statement"], found.parts.filter((part) => part.dimension).map((part) => [part.name, compact(part.dimension), h("a", { href: `#/paper?id=${part.statement}` }, part.statement)]), `redundancy of ${found.name} by part`),
      eps.length ? h("p", { class: "hint" }, `If the norms had eps = 0: ${eps.map((part) => `${compact(part.dimension)} ${part.name}`).join(", ")} more.`) : null),
    h("section", { class: "card" }, h("h2", {}, `Layers × heads: ${show}`), headMap(found, show, (head) => spectrum.replaceChildren(...drawHead(head))), spectrum),
    h("section", { class: "card" }, h("h2", {}, "What the function does not see"),
      found.dead.length ? table(["what", "parameters", "evidence", "statement"], found.dead.map((dead) => [dead.what, compact(dead.count), dead.evidence, h("a", { href: `#/paper?id=${dead.statement}` }, dead.statement)]), `dead parameters of ${found.name}`) : h("p", {}, "No dead parameters were found."),
      found.equal_heads.length ? h("ul", {}, found.equal_heads.map(({ layer, heads: [one, other], distance }) => h("li", {}, `layer ${layer}: heads ${one} and ${other} are the same up to a change of basis (distance ${compact(distance)})`))) : h("p", { class: "muted" }, "No two heads of a layer are the same up to a change of basis."),
      found.remarks.length ? h("ul", {}, found.remarks.map((text) => h("li", {}, text))) : null),
    codeBox(found.code, found.name),
  ];
}

function headMap({ heads, name }, show, choose) {
  const all = heads.map(SHOWN[show]), low = Math.min(...all), high = Math.max(...all);
  const layers = [...new Set(heads.map((head) => head.layer))].map((layer) => [layer, heads.filter((head) => head.layer === layer)]);
  const cell = (head) => {
    const value = SHOWN[show](head), weak = head.query_key.rank !== null && head.query_key.rank < head.query_key.values.length;
    const button = h("button", { type: "button", "aria-label": `layer ${head.layer}, head ${head.head}: ${compact(value)}`, title: weak ? `rank ${head.query_key.rank} of ${head.query_key.values.length}` : "", "aria-pressed": "false", style: shade(high > low ? (value - low) / (high - low) : 0.5), on: { click: () => { for (const other of button.closest("table").querySelectorAll("button")) other.setAttribute("aria-pressed", "false"); button.setAttribute("aria-pressed", "true"); choose(head); } } }, `${+value.toPrecision(3)}${weak ? "*" : ""}`);
    return button;
  };
  return headTable(`${name}: layers down, heads across; * marks a head of smaller rank`, layers, cell);
}

function drawHead(head) {
  const line = (name, { values, rank, verdict }) => {
    const top = Math.max(...values, 1e-30), floor = 1e-6, width = 300, height = 90;
    const y = (x) => height - 4 - (height - 12) * Math.max(0, 1 + Math.log10(Math.max(x / top, floor)) / 6);
    return h("div", {}, h("h3", {}, `${name}: ${rank === null ? "rank undecided" : `rank ${rank} of ${values.length}`}`),
      s("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img", "aria-label": `${name}: singular values from ${compact(top)} to ${compact(values.at(-1))}` },
        values.map((x, k) => s("rect", { x: (k * width) / values.length, y: y(x), width: Math.max(0.6, (0.8 * width) / values.length), height: height - 4 - y(x), fill: "var(--accent)" }))),
      h("p", { class: "hint" }, `${compact(top)} … ${compact(values.at(-1))}, logarithmic over six powers of ten; ${verdict}`));
  };
  return [h("h3", {}, `Layer ${head.layer}, head ${head.head} (keys and values ${head.group})`), line("query–key", head.query_key), line("value–output", head.value_output), h("p", { class: "hint" }, `imbalance of the factors ${compact(imbalance(head))}`)];
}
