// Network: an architecture, its formula at once, a proof on request.
import { ask, startJob } from "./api.js";
import { choice, compact, debounce, field, h, indexed, notice, scroll } from "./dom.js";
import { showDiagram } from "./diagram.js";
import { codeBox, download, dropZone, fromAddress, latest, sessionFiles, toAddress, work } from "./parts.js";

const DEFAULTS = { widths: "4,2,3", ranks: "2,2", tokens: "3", attention: "lightning", heads: "1", value_ranks: "", skip: "none", mask: "none", temperature: "1", readout: "logits", seed: "0", network: "architecture" };
const COLOURS = ["#8ec5a6", "#f2c46d", "#9cc3ee", "#e5a3a0", "#c6b3e6", "#bfc7d1", "#f0b48a"];
const STATUS = { theorem: ["good", "theorem: proved for all such networks"], conjecture: ["warn", "conjecture: supported by computation"], none: ["bad", "none: no formula is known"] };

export const numbers = (text) => text.split(",").map((part) => (/^\s*\d+\s*$/.test(part) ? Number(part) : part.trim()));
const one = (text) => (/^\s*-?\d+\s*$/.test(text) ? Number(text) : text);

export function architectureOf(values) {
  return {
    widths: numbers(values.widths), ranks: numbers(values.ranks), tokens: one(values.tokens), attention: values.attention, heads: one(values.heads),
    value_ranks: values.value_ranks ? numbers(values.value_ranks) : null, skip: values.skip, mask: values.mask,
    temperature: values.temperature.trim() === "" || Number.isNaN(Number(values.temperature)) ? values.temperature : Number(values.temperature),
  };
}

export function architectureControls(values, changed, { readout = true } = {}) {
  const set = (name) => (value) => { values[name] = value; changed(); };
  const text = (name, properties = {}) => h("input", { value: values[name], autocomplete: "off", spellcheck: "false", ...properties, on: { input: (event) => set(name)(event.target.value) } });
  const number = (name, min = 1) => text(name, { type: "number", min, step: 1 });
  return [
    field("Widths", text("widths"), "d_0, …, d_l"), field("Ranks", text("ranks"), "a_1, …, a_l"),
    field("Tokens", number("tokens")), field("Attention", choice(["lightning", "softmax"], values.attention, set("attention"))),
    field("Heads", number("heads")), field("Value ranks", text("value_ranks", { placeholder: "not factored" }), "v_1, …, v_l"),
    field("Skip", choice(["none", "residual", "inner"], values.skip, set("skip"))), field("Mask", choice(["none", "causal"], values.mask, set("mask"))),
    field("Temperature", text("temperature", { inputmode: "decimal" }), "softmax"),
    readout ? field("Readout", choice(["logits", "probabilities", "decisions"], values.readout, set("readout"))) : null,
    field("Seed", number("seed", 0)),
  ];
}

export async function render(root, parameters, remember) {
  const values = fromAddress(DEFAULTS, parameters);
  const modules = await sessionFiles("network");
  const theory = h("div", { class: "stack" }), proof = h("div", { "aria-live": "polite" }), code = h("div", {});
  const prove = h("button", { type: "button", on: { click: () => startProof() } }, "Prove the dimension");
  const gate = h("span", { class: "hint" });
  const module = () => modules.find((one) => one.name === values.network);
  const question = () => ({ architecture: architectureOf(values), readout: values.readout });
  let changes = 0;

  const offer = ({ proof: { offered, sentence } }) => { prove.disabled = !offered; gate.textContent = sentence; };
  const refresh = async () => {
    remember(toAddress(DEFAULTS, values));
    const turn = ++changes;
    if (module()) {
      prove.disabled = true;
      await work(theory, "diagram-module", { files: { network: module().id } }, (answer) => { offer(answer); code.replaceChildren(codeBox(answer.code, "the proof")); return showModule(answer); });
      return;
    }
    try {
      const answer = await ask("/api/network", { method: "POST", body: question() });
      if (turn !== changes) return;
      const place = h("div", {});
      theory.replaceChildren(...showTheory(answer, place));
      code.replaceChildren(codeBox(answer.code, "the formula"));
      offer(answer);
      draw(place, question());
    } catch (error) {
      if (turn === changes) { theory.replaceChildren(notice("bad", error.message)); prove.disabled = true; }
    }
  };
  const draw = latest(async (place, asked) => {
    place.textContent = "drawing …";
    try {
      const { element, light } = showDiagram(await startJob("diagram", asked).result);
      place.light = light;
      place.replaceChildren(element);
    } catch (error) { place.textContent = error.message; }
  });
  const changed = debounce(() => { proof.job?.cancel(); proof.replaceChildren(); refresh(); }, 120);

  const startProof = () => work(proof, ...(module() ? ["prove-module", { files: { network: module().id }, seed: one(values.seed) }] : ["prove", { ...question(), seed: one(values.seed) }]), (result) => {
    code.replaceChildren(codeBox(result.code, "the proof"));
    const exact = result.certificate.verdict.startsWith("exact");
    return [
      h("div", { class: "row" }, h("span", { class: `chip ${exact ? "good" : "warn"}` }, `${exact ? "✓ " : ""}${result.certificate.verdict}`),
        h("span", { class: "big" }, exact ? compact(result.certificate.lower) : `${compact(result.certificate.lower)} … ${compact(result.certificate.upper)}`)),
      h("p", {}, result.sentence),
      ledger(result.ledger, result.certificate.parameters),
      h("p", { class: "row" }, h("button", { type: "button", class: "quiet", on: { click: () => download("certificate.json", result.file) } }, "Download the certificate")),
    ];
  });
  const controls = h("form", { class: "card controls", "aria-label": "the network", on: { submit: (event) => event.preventDefault() } });
  const drawControls = () => controls.replaceChildren(...[
    modules.length ? h("div", { class: "wide" }, field("Network", choice(["architecture", ...modules.map((one) => one.name)], values.network, (name) => { values.network = name; drawControls(); changed(); }))) : null,
    ...(module() ? [] : architectureControls(values, changed)),
  ].filter(Boolean));
  drawControls();

  const verified = h("div", { "aria-live": "polite" });
  const verifyFile = (file) => work(verified, "verify", { files: { certificate: file.id } }, (result) => [
    notice(result.agrees ? "good" : "bad", `${result.agrees ? "✓ verified" : "✗ refuted"}: ${result.sentence}`),
    h("p", { class: "muted" }, `The certificate says: ${result.certificate_sentence}`),
    codeBox(result.code, "the verification"),
  ]);

  root.replaceChildren(
    h("h1", {}, "How large is the space of functions?"),
    h("p", { class: "lead" }, "Choose an attention network. Theory answers at once; a proof for this very network takes a moment."),
    h("div", { class: "columns" },
      controls,
      h("div", { class: "stack" }, theory,
        h("section", { class: "card" }, h("h2", {}, "Proof"), h("p", { class: "row" }, prove, gate), proof),
        code,
        h("section", { class: "card" }, h("h2", {}, "Verify a certificate"), dropZone("Drop a certificate here: it is recomputed by other means, with python-flint and plain integers.", ["certificate"], verifyFile), verified))),
  );
  await refresh();
  for (const file of await sessionFiles("certificate")) if (file.origin === "named") verified.append(h("p", {}, h("button", { type: "button", class: "quiet", on: { click: () => verifyFile(file) } }, `Verify ${file.name}`)));
}

function ledger(lines, parameters) {
  return scroll("ledger", h("table", {},
    h("thead", {}, h("tr", {}, h("th", { class: "number", scope: "col" }, "dimensions"), h("th", { scope: "col" }, "what"), h("th", { scope: "col" }, "statement"))),
    h("tbody", {}, lines.filter((line) => line.dimension || ["dimension", "unexplained"].includes(line.name)).map((line) => h("tr", {}, h("td", { class: "number" }, compact(line.dimension)), h("td", {}, line.name), h("td", {}, line.statement ? h("a", { href: `#/paper?id=${line.statement}` }, line.statement) : "")))),
    h("tfoot", {}, h("tr", {}, h("td", { class: "number" }, h("b", {}, compact(parameters))), h("td", {}, "parameters"), h("td", {})))));
}

const diagramCard = (place) => h("section", { class: "card" }, h("h2", {}, "The diagram of spaces"),
  h("p", { class: "hint" }, "Boxes are spaces with their sizes and the changes of basis that the function does not see; arrows are tensors. Point at a symmetry above to see what it moves."),
  place);

// A network that a module made: nothing is known of it before a proof but what it is made of.
function showModule(answer) {
  const { element, light } = showDiagram(answer);
  const rows = answer.symmetries.map(({ name, tensors }) => [name, h("small", {}, `moves ${tensors.join(", ")}`)]);
  return [
    h("section", { class: "card", "aria-live": "polite" }, h("h2", {}, answer.name),
      h("div", { class: "row" }, h("span", { class: "big" }, compact(answer.parameters)), h("span", {}, "parameters")), h("p", {}, answer.sentence),
      rows.length ? [h("h3", {}, "Its symmetries"), pressed(rows, light)] : h("p", {}, "No symmetry is built in; `neuromanifold discover` looks for them.")),
    diagramCard(element),
  ];
}

function showTheory(answer, place) {
  const { formula, statement } = answer;
  const [kind, words] = STATUS[formula.status];
  const light = (name) => place.light?.(name);
  return [
    h("section", { class: "card", "aria-live": "polite" }, h("h2", {}, answer.name),
      h("div", { class: "row" }, h("span", { class: "big" }, compact(formula.dimension)), h("span", {}, "dimensions of ", h("b", {}, compact(answer.parameters)), " parameters"), h("span", { class: `chip ${kind}`, title: words }, formula.status)),
      h("p", {}, formula.sentence),
      statement ? h("details", {}, h("summary", {}, `${statement.id}: ${statement.title}`), h("p", {}, indexed(statement.claim)),
        statement.hypotheses.length ? h("ul", {}, statement.hypotheses.map((text) => h("li", {}, indexed(text)))) : null, h("a", { href: `#/paper?id=${statement.id}` }, "in the list of statements")) : null,
      formula.unmet.length ? h("div", {}, h("h3", {}, formula.status === "conjecture" ? "Not a theorem, because" : "Why not"), h("ul", {}, formula.unmet.map((text) => h("li", {}, text)))) : h("p", { class: "good" }, "✓ all hypotheses are met")),
    answer.shares.length || formula.dimension !== null ? h("section", { class: "card" }, h("h2", {}, "Where the parameters go"), bar(answer, light)) : null,
    diagramCard(place),
  ].filter(Boolean);
}

function bar(answer, light) {
  const total = Number(answer.parameters), parts = [{ name: "dimension", dimension: answer.formula.dimension, meaning: "what the function shows" }, ...answer.shares].filter((part) => Number(part.dimension) > 0);
  const shade = (i) => (i === 0 ? COLOURS[0] : `repeating-linear-gradient(${45 + 40 * i}deg, ${COLOURS[i % COLOURS.length]} 0 ${5 + i}px, color-mix(in srgb, ${COLOURS[i % COLOURS.length]} 82%, black) ${5 + i}px ${7 + i}px)`);
  const segments = parts.map((part, i) => h("div", { title: `${part.name}: ${compact(part.dimension)}`, style: { flex: `${Number(part.dimension) / total} 1 0`, background: shade(i) } }, Number(part.dimension) / total > 0.07 ? compact(part.dimension) : ""));
  const list = pressed(parts.map((part, i) => [part.name, h("small", {}, indexed(part.meaning)), h("span", { class: "swatch", style: { background: shade(i) } }), h("b", {}, compact(part.dimension))]), light);
  return [h("div", { class: "bar", role: "img", "aria-label": parts.map((part) => `${part.name} ${part.dimension}`).join(", ") }, segments), list];
}

// A list of which one entry can be pressed; pointing at it is enough to light up what it names.
function pressed(entries, light) {
  const buttons = entries.map(([name, text, swatch = null, number = null]) => {
    const on = () => light(name), off = () => { if (button.getAttribute("aria-pressed") !== "true") light(null); };
    const click = () => { const pressed = button.getAttribute("aria-pressed") !== "true"; for (const other of buttons) other.setAttribute("aria-pressed", "false"); button.setAttribute("aria-pressed", String(pressed)); light(pressed ? name : null); };
    const button = h("button", { type: "button", "aria-pressed": "false", on: { mouseenter: on, focus: on, mouseleave: off, blur: off, click } }, swatch, number, h("span", {}, name, text));
    return button;
  });
  return h("ul", { class: "shares" }, buttons.map((button) => h("li", {}, button)));
}
