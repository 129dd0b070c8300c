// The diagram of spaces: spaces are boxes with their groups, tensors are arrows between them.
import { h, s } from "./dom.js";

const STEP = 210, MIDDLE = 165, HIGH = 45, LOW = 285, WIDTH = 112, HEIGHT = 48;

export function drawDiagram({ spaces, tensors }) {
  const depth = Math.max(...spaces.map((space) => space.layer), 1);
  const place = Object.fromEntries(spaces.map((space) => [space.id, position(space)]));
  const nodes = {}, edges = {};
  const marker = s("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 5, markerHeight: 5, orient: "auto-start-reverse" }, s("path", { d: "M0 0L8 4L0 8z", fill: "context-stroke" }));
  const svg = s("svg", {
    class: "diagram", viewBox: `0 0 ${depth * STEP + WIDTH + 40} ${spaces.some((x) => x.role === "values") ? 320 : 205}`, role: "img",
    "aria-label": `Diagram: ${spaces.map((x) => `${x.label} of size ${x.size}, ${x.group}`).join("; ")}`,
  }, s("defs", {}, marker));
  const twins = {};
  for (const tensor of tensors) {
    const key = `${tensor.source} ${tensor.target}`;
    const twin = (twins[key] = (twins[key] ?? -1) + 1);
    const alone = tensors.filter((t) => `${t.source} ${t.target}` === key).length === 1;
    edges[tensor.name] = edge(tensor, place[tensor.source], place[tensor.target], alone ? 0 : twin ? 1 : -1);
  }
  for (const space of spaces.filter((x) => x.role === "keys")) {
    const { x, y } = place[space.id];
    svg.append(s("path", { class: "scores", d: `M${x} ${y + HEIGHT / 2}V${MIDDLE - 4}` }, s("title", {}, "the scores weigh the values")));
  }
  for (const space of spaces) nodes[space.id] = node(space, place[space.id]);
  svg.append(...Object.values(edges), ...Object.values(nodes));
  const light = (symmetry) => {
    for (const [id, element] of [...Object.entries(nodes), ...Object.entries(edges)]) {
      const on = symmetry && (symmetry.spaces.includes(id) || symmetry.tensors.includes(id));
      element.classList.toggle("lit", Boolean(on));
      element.classList.toggle("dim", Boolean(symmetry) && !on);
    }
  };
  return { element: h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "diagram of spaces" }, svg), light };
}

function position({ role, layer }) {
  const left = 20 + WIDTH / 2;
  if (role === "stream") return { x: left + layer * STEP, y: MIDDLE };
  return { x: left + (layer + 0.5) * STEP, y: role === "keys" ? HIGH : LOW };
}

function node({ label, size, copies, group, role }, { x, y }) {
  const several = copies > 1 ? `${copies} × ` : "";
  return s("g", { class: `space ${group === "fixed" ? "" : "free"}` },
    s("title", {}, `${label}: ${several}size ${size}, ${group === "fixed" ? "its basis is fixed" : `changes of basis ${group}`}`),
    s("rect", { x: x - WIDTH / 2, y: y - HEIGHT / 2, width: WIDTH, height: HEIGHT, rx: role === "stream" ? 6 : 22 }),
    s("text", { x, y: y - 4 }, `${label} · ${several}${size}`), s("text", { x, y: y + 14, class: "group" }, group));
}

function edge({ name, shape }, from, to, bend) {
  const vertical = Math.abs(to.y - from.y) > 10;
  const letter = { query: "Q", key: "K", value: "V", output: "O" }[name.split(".").at(-1)] ?? name;
  const up = Math.sign(to.y - from.y);
  const start = vertical ? { x: from.x + (from.x < to.x ? 20 : -20) + bend * 18, y: from.y + up * HEIGHT / 2 } : { x: from.x + WIDTH / 2, y: from.y };
  let end = vertical ? { x: to.x + (from.x < to.x ? -WIDTH / 2 : WIDTH / 2), y: to.y + bend * 9 } : { x: to.x - WIDTH / 2, y: to.y };
  let path = `M${start.x} ${start.y}Q${start.x} ${end.y} ${end.x} ${end.y}`;
  let label = { x: (start.x + end.x) / 2 + (bend > 0 ? 14 : -20), y: (start.y + end.y) / 2 - bend * 4 + (bend > 0 ? 14 : -2) };
  if (!vertical) { path = `M${start.x} ${start.y}H${end.x}`; label = { x: (start.x + end.x) / 2 - 4, y: start.y + 18 }; }
  else if (to.y < from.y && from.y > MIDDLE) {
    // from the values below up to the next stream
    const s2 = { x: from.x + WIDTH / 2, y: from.y }, e2 = { x: to.x - 20, y: to.y + HEIGHT / 2 };
    path = `M${s2.x} ${s2.y}Q${e2.x} ${s2.y} ${e2.x} ${e2.y}`; label = { x: e2.x - 22, y: (s2.y + e2.y) / 2 + 12 }; end = e2;
  }
  return s("g", { class: "edge" }, s("title", {}, `${name}: ${shape.join(" × ")}`),
    s("path", { d: path, "marker-end": "url(#arrow)" }), s("text", { x: label.x, y: label.y }, letter));
}
