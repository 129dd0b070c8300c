// Atlas: the records of a store, filtered, over two fields, and row by row.
import { choice, compact, debounce, field, h, notice, scroll } from "./dom.js";
import { codeBox, colour, dropZone, fromAddress, loadPlotly, sessionFiles, toAddress, work } from "./parts.js";

const DEFAULTS = { where: "", x: "ranks", y: "heads", value: "dimension" };

export async function render(root, parameters, remember) {
  const values = fromAddress(DEFAULTS, parameters);
  const files = await sessionFiles("atlas");
  let file = files.findLast((one) => one.name === parameters.get("file")) ?? files.findLast((one) => one.origin !== "shipped") ?? files.find((one) => one.name === "heads"), cell = null;
  const body = h("div", { class: "stack" }), controls = h("form", { class: "card controls", "aria-label": "what to show", on: { submit: (event) => event.preventDefault() } });
  const refresh = () => {
    remember({ file: file.name, ...toAddress(DEFAULTS, values) });
    work(body, "atlas", { files: { atlas: file.id }, ...values, cell }, (found) => { drawControls(found.columns); return showAtlas(found, cell, (chosen) => { cell = chosen; refresh(); }); });
  };
  const changed = debounce(() => { cell = null; refresh(); }, 300);
  let where = null;
  const drawControls = (columns) => {
    if (where) return;
    const set = (name) => (value) => { values[name] = value; changed(); };
    where = h("input", { value: values.where, placeholder: "heads > 1 and depth == 2", spellcheck: "false", on: { input: () => set("where")(where.value) } });
    controls.replaceChildren(
      h("div", { class: "wide" }, field("Filter", where, "as in Python")), field("Across", choice(columns, values.x, set("x"))), field("Down", choice(columns, values.y, set("y"))),
      field("Show", choice(["dimension", "difference", "unexplained"], values.value, set("value"))),
      h("p", { class: "wide hint" }, "dimension: the rank found; difference: formula minus rank; unexplained: kernel beyond the known symmetries."));
  };
  const opened = h("div", {});
  const drawFiles = () => opened.replaceChildren(field("Open", choice([...new Set(files.map((one) => one.name))], file.name, (name) => { file = files.findLast((one) => one.name === name); cell = null; refresh(); }), "with those of the package"));
  root.replaceChildren(
    h("h1", {}, "What did a sweep find?"), h("p", { class: "lead" }, "An atlas holds one certificate for each network of a grid. Choose two fields; a cell leads to its rows, a row to its certificate."),
    h("div", { class: "columns" }, h("div", { class: "stack" }, controls, h("section", { class: "card" }, h("h2", {}, "Open an atlas"),
      opened, dropZone("Drop an atlas (.sqlite) or a table of one (.csv).", ["atlas"], (kept) => { files.push(kept); file = kept; drawFiles(); cell = null; refresh(); }))), body));
  drawFiles();
  refresh();
}

function showAtlas(found, cell, choose) {
  const scatter = h("div", { class: "plot", role: "img", "aria-label": "parameters against the rank found" });
  drawScatter(scatter, found.points).catch((error) => scatter.replaceChildren(notice("bad", error.message)));
  const tile = (number, words) => h("div", { class: "tile" }, h("b", {}, compact(number)), h("span", {}, words));
  return [
    h("div", { class: "tiles" }, tile(found.done, "done"), tile(found.exact, "proved exactly"), tile(found.failed, "failed"), tile(found.left, "left"), tile(found.count, "meet the filter")),
    h("section", { class: "card" }, h("h2", {}, `${found.value} over ${found.x} and ${found.y}`), heat(found, cell, choose), found.cells_left_out ? notice("warn", `${found.cells_left_out} cells are left out; narrow the filter.`) : null),
    h("section", { class: "card" }, h("h2", {}, cell ? `Rows with ${found.x} ${cell[0]} and ${found.y} ${cell[1]}` : "Rows"), rows(found)),
    h("section", { class: "card" }, h("h2", {}, "Parameters against dimension"), scatter, h("p", { class: "hint" }, "Full: proved. Hollow: rank found. Circles: lightning, squares: softmax. Click a point to open its network.")),
    codeBox(found.code),
  ];
}

const order = (a, b) => {
  const [x, y] = [a, b].map((text) => text.split("-").map(Number));
  if ([...x, ...y].some(Number.isNaN)) return a < b ? -1 : 1;
  return x.length - y.length || (x.map((n, k) => n - y[k]).find((n) => n !== 0) ?? 0);
};

function heat(found, cell, choose) {
  if (!found.cells.length) return notice("warn", "No record has this value; widen the filter.");
  const across = [...new Set(found.cells.map((one) => one.x))].sort(order), up = [...new Set(found.cells.map((one) => one.y))].sort(order);
  const largest = Math.max(1, ...found.cells.map((one) => Math.max(Math.abs(one.low), Math.abs(one.high))));
  const at = new Map(found.cells.map((one) => [`${one.x} ${one.y}`, one]));
  const button = (one) => {
    const value = Math.abs(one.high) > Math.abs(one.low) ? one.high : one.low, hue = value < 0 ? "#e8986a" : "#6fa8dc";
    const text = (one.low === one.high ? compact(one.low) : `${compact(one.low)}…${compact(one.high)}`), sure = one.proved || found.value !== "dimension";
    const pressed = cell && cell[0] === one.x && cell[1] === one.y;
    return h("button", { type: "button", "aria-pressed": String(Boolean(pressed)), title: `${one.count} records${one.proved ? ", all proved" : ""}`, "aria-label": `${found.x} ${one.x}, ${found.y} ${one.y}: ${text}, ${one.count} records`, style: { background: `color-mix(in oklab, ${hue} ${Math.round((90 * Math.abs(value)) / largest)}%, #f4f6f9)` }, on: { click: () => choose(pressed ? null : [one.x, one.y]) } }, sure ? text : `≥${text}`);
  };
  return scroll("heat map", h("table", { class: "heat" }, h("caption", { class: "hint" }, `${found.y} down, ${found.x} across; choose a cell for its rows`),
    h("thead", {}, h("tr", {}, h("td", {}), across.map((x) => h("th", { scope: "col" }, x || "none")))),
    h("tbody", {}, up.map((y) => h("tr", {}, h("th", { scope: "row" }, y || "none"), across.map((x) => h("td", {}, at.has(`${x} ${y}`) ? button(at.get(`${x} ${y}`)) : "")))))));
}

function link(row) {
  const a = row.architecture, fields = { widths: a.widths, ranks: a.ranks, tokens: a.tokens, attention: a.attention, heads: a.heads, value_ranks: a.value_ranks ?? "", skip: a.skip, mask: a.mask, temperature: a.temperature, readout: row.readout, seed: row.seed };
  return `#/network?${new URLSearchParams(fields)}`;
}

function rows(found) {
  const columns = ["network", "readout", "seed", "parameters", "rank", "upper", "verdict", "formula", "status", "agreement"];
  return [h("p", { class: "hint" }, `${compact(found.rows_count)} rows${found.rows_count > found.rows.length ? `, the first ${found.rows.length} shown` : ""}`),
    scroll("rows", h("table", { class: "rows" },
      h("thead", {}, h("tr", {}, columns.map((c) => h("th", { scope: "col" }, c)), h("th", { scope: "col" }, "certificate"))),
      h("tbody", {}, found.rows.map((row) => h("tr", {}, columns.map((c) => h("td", { class: typeof row[c] === "number" ? "number" : "" }, compact(row[c]))), h("td", {}, Object.keys(row.evidence).length ? h("details", {}, h("summary", {}, "evidence"), h("pre", { tabindex: 0 }, JSON.stringify(row.evidence, null, 1))) : null, h("a", { href: link(row) }, "prove again")))))))];
}

async function drawScatter(place, points) {
  const Plotly = await loadPlotly();
  const groups = Map.groupBy ? Map.groupBy(points, (p) => `${p.attention}, ${p.exact ? "proved dimension" : "rank found"}`) : new Map([["all", points]]);
  const draw = () => {
    const traces = [...groups].map(([name, here]) => ({ type: "scatter", mode: "markers", name, x: here.map((p) => p.parameters), y: here.map((p) => p.rank), text: here.map((p) => p.name), hovertemplate: "%{text}<br>%{x} parameters, rank %{y}<extra></extra>", marker: { size: 8, color: colour(name.startsWith("softmax") ? "positive" : "negative"), symbol: `${name.startsWith("softmax") ? "square" : "circle"}${name.includes("proved") ? "" : "-open"}` } }));
    const largest = Math.max(1, ...points.map((p) => p.parameters));
    traces.push({ type: "scatter", mode: "lines", name: "as many as parameters", x: [0, largest], y: [0, largest], line: { color: colour("muted"), dash: "dot" }, hoverinfo: "skip" });
    const axis = (title) => ({ title: { text: title }, color: colour("muted"), gridcolor: colour("line"), zerolinecolor: colour("line"), rangemode: "tozero" });
    return [traces, { margin: { l: 55, r: 10, t: 10, b: 45 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: colour("ink") }, xaxis: axis("parameters"), yaxis: axis("rank found"), legend: { orientation: "h", y: 1.12 } }];
  };
  await Plotly.newPlot(place, ...draw(), { displayModeBar: false, responsive: true });
  place.on("plotly_click", ({ points: [hit] }) => { const here = [...groups.values()][hit.curveNumber]?.[hit.pointIndex]; if (here) location.hash = link(here); });
  window.addEventListener("themechange", () => { if (place.isConnected) Plotly.react(place, ...draw()); });
}
