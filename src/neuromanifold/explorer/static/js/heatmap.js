// A matrix as a heat map: colour for size and sign, numbers where they fit, a dot for minus where not.
import { s } from "./dom.js";

const CELL = 40;

export function heatMap(rows, columns, scale, label) {
  const wide = columns <= 8 && rows <= 10;
  const cells = [];
  const svg = s("svg", { viewBox: `0 0 ${columns * CELL} ${rows * CELL}`, width: columns * (wide ? CELL : Math.max(8, Math.min(CELL, 200 / columns))), role: "img", "aria-label": label });
  for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) {
    const [x, y] = [j * CELL, i * CELL];
    const rect = s("rect", { x: x + 1, y: y + 1, width: CELL - 2, height: CELL - 2, rx: 3, stroke: "currentColor", "stroke-opacity": 0.25 });
    const mark = wide ? s("text", { x: x + CELL / 2, y: y + CELL / 2 + 4, "text-anchor": "middle", "font-size": 11 }) : s("circle", { cx: x + CELL / 2, cy: y + CELL / 2, r: 4, fill: "currentColor" });
    svg.append(rect, mark);
    cells.push([rect, mark]);
  }
  const update = (values) => values.forEach((value, k) => {
    const [rect, mark] = cells[k], amount = Math.min(1, Math.abs(value) / (scale || 1));
    rect.setAttribute("fill", `color-mix(in oklab, var(--${value < 0 ? "negative" : "positive"}) ${Math.round(6 + 60 * amount)}%, var(--card))`);
    if (wide) mark.textContent = Math.abs(value) >= 100 ? value.toExponential(0) : value.toFixed(Math.abs(value) < 10 ? 2 : 0).replace("-", "−");
    else mark.setAttribute("visibility", value < 0 ? "visible" : "hidden");
  });
  return { element: svg, update };
}
