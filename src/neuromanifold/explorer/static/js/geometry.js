// Geometry: slices of the neuromanifold of one layer, and a point that says what it is.
import { startJob } from "./api.js";
import { compact, field, h, notice, s } from "./dom.js";
import { codeBox, colour, latest, loadPlotly, work } from "./parts.js";

const SLICES = { umbrella: "Whitney’s umbrella", "two-umbrellas": "Two umbrellas", crossing: "Crossing sheets" };
const KINDS = {
  smooth: ["good", "● smooth point"], singular: ["warn", "✕ singular point"], boundary: ["bad", "◆ boundary point"],
  closure: ["info", "◌ in the Zariski closure only"], outside: ["muted", "○ not in the space of functions"],
};

export async function render(root, parameters, remember) {
  let name = parameters.get("slice") in SLICES ? parameters.get("slice") : "umbrella";
  const start = (parameters.get("point") ?? "").split(",").map(Number);
  let at = start.length === 3 && start.every(Number.isFinite) ? start : null;
  const body = h("div", { class: "stack" });
  const tabs = h("div", { class: "row tabs", role: "group", "aria-label": "slices" }, Object.entries(SLICES).map(([key, title]) => h("button", { type: "button", class: "quiet", "data-slice": key, "aria-pressed": String(key === name), on: { click: () => { name = key; at = null; open(); } } }, title)));
  const open = () => {
    for (const tab of tabs.children) tab.setAttribute("aria-pressed", String(tab.dataset.slice === name));
    work(body, "surface", { slice: name }, (surface) => showSurface(surface, at, (point) => { at = point; remember({ slice: name, point: point.map((x) => +x.toPrecision(12)).join(",") }); }));
  };
  root.replaceChildren(
    h("h1", {}, "What does the space of functions look like?"),
    h("p", { class: "lead" }, "One lightning layer with d = a = 2 and one output is a pair of quadratic forms with a common real factor: a space of dimension 5 in R⁶. Three-dimensional slices of it are surfaces."),
    tabs, body,
  );
  open();
}

function showSurface(surface, given, moved) {
  const plot = h("div", { class: "plot", role: "img", "aria-label": `${surface.title} in three dimensions` });
  const verdict = h("div", { "aria-live": "polite" }), pad = h("div", {}), code = h("div", {});
  const middle = surface.box.map(([low, high]) => (low + high) / 2);
  let at = given ?? nearest(surface, middle.map((x, k) => x + 0.22 * (surface.box[k][1] - surface.box[k][0]))), stay = true, drawn = null;
  const sliders = surface.coordinates.map((coordinate, k) => h("input", { type: "range", min: surface.box[k][0], max: surface.box[k][1], step: 0.01, on: { input: () => { at = sliders.map((one) => Number(one.value)); if (stay) at = nearest(surface, at); show(); } } }));
  const keep = h("input", { type: "checkbox", checked: true, on: { change: () => { stay = keep.checked; if (stay) { at = nearest(surface, at); show(); } } } });
  keep.id = "stay";

  const classify = latest(async (asked) => {
    try {
      const answer = await startJob("point", { slice: surface.name, point: asked }).result;
      const [kind, words] = KINDS[answer.kind];
      verdict.replaceChildren(h("p", {}, h("span", { class: `chip ${kind}` }, words)), h("p", {}, answer.sentence),
        h("p", { class: "muted mono" }, `(${surface.coordinates.join(", ")}) = (${asked.map((x) => x.toFixed(3)).join(", ")}),  ${pretty(surface.equation)} = ${compact(answer.equation)}`));
      pad.replaceChildren(drawPad(surface, answer.section, asked, (x, y) => { at = [at[0], x, y]; if (stay) at = nearestInSection(answer.section, at); show(); }));
      code.replaceChildren(codeBox(answer.code));
    } catch (error) { verdict.replaceChildren(notice("bad", error.message)); }
  });
  const show = () => {
    sliders.forEach((slider, k) => { slider.value = String(at[k]); });
    moved(at);
    drawn?.movePoint(at);
    classify(at);
  };
  const go = (point) => { at = point; show(); };
  drawPlot(plot, surface, at, (point) => go(point)).then((handle) => { drawn = handle; handle?.movePoint(at); }, (error) => plot.replaceChildren(notice("bad", error.message)));
  const smooth = surface.vertices[0].map((_, i) => i).find((i) => surface.vertices.every((axis, k) => axis[i] > surface.box[k][0] + 0.2 * (surface.box[k][1] - surface.box[k][0]) && axis[i] < surface.box[k][1]) && farFromLines(surface, surface.vertices.map((axis) => axis[i])));
  const specials = [
    ...surface.points.map((point) => ["Go to the pinch", point]),
    ...surface.lines.map((line) => [line.kind === "singular" ? "Go to the crossing" : "Go to the line outside", { ...line, at: line.ends[0].map((x, k) => (x + line.ends[1][k]) / 2) }]),
    ...(smooth === undefined ? [] : [["Go to a smooth point", { text: "Here the space of functions is a manifold.", at: surface.vertices.map((axis) => axis[smooth]) }]]),
  ];
  show();
  return [h("div", { class: "pair" },
    h("section", { class: "card tall" }, h("h2", {}, surface.title), h("p", { class: "mono" }, surface.forms), h("p", {}, "equation of the Zariski closure: ", h("code", {}, `${pretty(surface.equation)} = 0`)), plot, h("p", { class: "hint" }, "Turn it with the mouse, click on the surface to put the point there. Yellow line: two sheets cross. Dotted: in the closure only. Diamond: boundary point.")),
    h("section", { class: "card" }, h("h2", {}, "A point that can be moved"), verdict,
      surface.coordinates.map((coordinate, k) => field(coordinate, sliders[k])),
      h("p", {}, keep, h("label", { for: "stay" }, "keep it on the surface")),
      h("h3", {}, `Cross-section at this ${surface.coordinates[0]}: drag the point`), pad,
      h("h3", {}, "Special points"), h("ul", {}, specials.map(([words, point]) => h("li", {}, h("button", { type: "button", class: "quiet small", on: { click: () => go(point.at) } }, words), ` ${point.text}`))))), code];
}

const pretty = (text) => text.replaceAll("*", " ").replaceAll("^2", "²").replaceAll("^3", "³").replaceAll("^4", "⁴").replaceAll("-", "−");
const distance = (a, b) => Math.hypot(...a.map((x, k) => x - b[k]));

function farFromLines(surface, point) {
  return surface.lines.every(({ ends: [a, b] }) => {
    const along = b.map((x, k) => x - a[k]), length = Math.hypot(...along);
    const t = Math.max(0, Math.min(1, along.reduce((sum, x, k) => sum + x * (point[k] - a[k]), 0) / length ** 2));
    return distance(point, a.map((x, k) => x + t * along[k])) > 0.35;
  });
}

function nearest(surface, point) {
  const [x, y, z] = surface.vertices;
  let best = 0, least = Infinity;
  for (let i = 0; i < x.length; i++) {
    const d = (x[i] - point[0]) ** 2 + (y[i] - point[1]) ** 2 + (z[i] - point[2]) ** 2;
    if (d < least) { least = d; best = i; }
  }
  return [x[best], y[best], z[best]];
}

// The nearest place where the equation vanishes, on the edges of the section's grid, by interpolation.
function nearestInSection(section, at) {
  let best = at, least = Infinity;
  for (const [a, b] of contour(section)) for (const [x, y] of [a, b]) {
    const d = (x - at[1]) ** 2 + (y - at[2]) ** 2;
    if (d < least) { least = d; best = [at[0], x, y]; }
  }
  return least < Infinity ? best : at;
}

// Marching squares for the level zero.
export function contour({ x, y, values }) {
  const segments = [];
  const cross = (p, q, u, v) => { const t = u / (u - v); return [p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])]; };
  // where the equation touches zero without changing sign, the zeros themselves are joined
  const flat = 1e-9 * Math.max(...values.flat().map(Math.abs)), zero = (i, j) => Math.abs(values[i]?.[j] ?? Infinity) <= flat;
  for (let i = 0; i < y.length; i++) for (let j = 0; j < x.length; j++) if (zero(i, j)) {
    if (zero(i, j + 1)) segments.push([[x[j], y[i]], [x[j + 1], y[i]]]);
    if (zero(i + 1, j)) segments.push([[x[j], y[i]], [x[j], y[i + 1]]]);
  }
  for (let i = 0; i + 1 < y.length; i++) for (let j = 0; j + 1 < x.length; j++) {
    const corners = [[x[j], y[i]], [x[j + 1], y[i]], [x[j + 1], y[i + 1]], [x[j], y[i + 1]]];
    const value = [values[i][j], values[i][j + 1], values[i + 1][j + 1], values[i + 1][j]];
    const hits = [];
    for (let k = 0; k < 4; k++) {
      const [u, v] = [value[k], value[(k + 1) % 4]];
      if ((u < 0) !== (v < 0)) hits.push(cross(corners[k], corners[(k + 1) % 4], u, v));
    }
    for (let k = 0; k + 1 < hits.length; k += 2) segments.push([hits[k], hits[k + 1]]);
  }
  return segments;
}

function drawPad(surface, section, at, moved) {
  const [[, ], [x0, x1], [y0, y1]] = surface.box, size = 300;
  const px = (x) => ((x - x0) / (x1 - x0)) * size, py = (y) => size - ((y - y0) / (y1 - y0)) * size;
  const handle = s("circle", { class: "handle", r: 9, cx: px(at[1]), cy: py(at[2]) });
  const svg = s("svg", { class: "pad", viewBox: `-8 -8 ${size + 16} ${size + 16}`, tabindex: 0, role: "application", "aria-label": `cross-section, ${surface.coordinates[1]} to the right, ${surface.coordinates[2]} upwards; arrow keys move the point` },
    contour(section).map(([a, b]) => s("line", { class: "curve", x1: px(a[0]), y1: py(a[1]), x2: px(b[0]), y2: py(b[1]) })),
    s("text", { x: size - 10, y: size / 2 - 6, "font-size": 15 }, surface.coordinates[1]), s("text", { x: size / 2 + 6, y: 14, "font-size": 15 }, surface.coordinates[2]),
    s("line", { x1: 0, x2: size, y1: py(0), y2: py(0), stroke: "currentColor", "stroke-opacity": 0.25 }), s("line", { y1: 0, y2: size, x1: px(0), x2: px(0), stroke: "currentColor", "stroke-opacity": 0.25 }), handle);
  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
  const to = (event) => {
    const box = svg.getBoundingClientRect(), scale = (size + 16) / box.width;
    moved(clamp(x0 + (((event.clientX - box.left) * scale - 8) / size) * (x1 - x0), x0, x1), clamp(y1 - (((event.clientY - box.top) * scale - 8) / size) * (y1 - y0), y0, y1));
  };
  svg.addEventListener("pointerdown", (event) => { svg.setPointerCapture(event.pointerId); to(event); });
  svg.addEventListener("pointermove", (event) => { if (event.buttons) to(event); });
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!step) return;
    event.preventDefault();
    moved(clamp(at[1] + (step[0] * (x1 - x0)) / 40, x0, x1), clamp(at[2] + (step[1] * (y1 - y0)) / 40, y0, y1));
  });
  return svg;
}

async function drawPlot(place, surface, at, clicked) {
  const Plotly = await loadPlotly();
  const [x, y, z] = surface.vertices, [i, j, k] = surface.faces;
  const traces = () => [
    { type: "mesh3d", x, y, z, i, j, k, color: colour("sheet"), opacity: 0.72, flatshading: false, lighting: { ambient: 0.55, diffuse: 0.7, specular: 0.15 }, hovertemplate: `${surface.coordinates.map((c, n) => `${c} %{${"xyz"[n]}:.2f}`).join(", ")}<extra></extra>` },
    ...surface.lines.map(({ ends, kind, text }) => ({ type: "scatter3d", mode: "lines", x: ends.map((e) => e[0]), y: ends.map((e) => e[1]), z: ends.map((e) => e[2]), line: { color: colour("mark"), width: 9, dash: kind === "singular" ? "solid" : "dot" }, hovertemplate: `${wrap(text)}<extra></extra>` })),
    ...surface.points.map(({ at: p, text }) => ({ type: "scatter3d", mode: "markers", x: [p[0]], y: [p[1]], z: [p[2]], marker: { symbol: "diamond", size: 8, color: colour("bad"), line: { color: "#fff", width: 1 } }, hovertemplate: `${wrap(text)}<extra></extra>` })),
    { type: "scatter3d", mode: "markers", x: [at[0]], y: [at[1]], z: [at[2]], marker: { size: 8, color: colour("positive"), line: { color: colour("ink"), width: 2 } }, hovertemplate: "the point<extra></extra>" },
  ];
  const axis = (n) => ({ title: { text: surface.coordinates[n] }, range: surface.box[n], color: colour("muted"), gridcolor: colour("line"), backgroundcolor: "rgba(0,0,0,0)" });
  const layout = () => ({ margin: { l: 0, r: 0, t: 0, b: 0 }, paper_bgcolor: "rgba(0,0,0,0)", showlegend: false, scene: { xaxis: axis(0), yaxis: axis(1), zaxis: axis(2), aspectmode: "cube", camera: { eye: { x: 1.6, y: -1.65, z: 0.82 } } } });
  await Plotly.newPlot(place, traces(), layout(), { displayModeBar: false, responsive: true });
  place.on("plotly_click", ({ points: [hit] }) => { if (hit.data.type === "mesh3d") clicked(nearest(surface, [hit.x, hit.y, hit.z])); });
  window.addEventListener("themechange", () => { if (place.isConnected) Plotly.react(place, traces(), layout()); });
  return { movePoint: (p) => { at = p; if (place.isConnected) Plotly.restyle(place, { x: [[p[0]]], y: [[p[1]]], z: [[p[2]]] }, [place.data.length - 1]); } };
}

const wrap = (text) => text.replace(/(.{1,48})(\s|$)/g, "$1<br>");
