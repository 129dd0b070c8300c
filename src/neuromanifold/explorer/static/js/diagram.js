// The diagram of spaces, as the library draws it; a symmetry lights up what it moves.
import { h, scroll } from "./dom.js";

export function showDiagram({ svg, symmetries }) {
  const drawing = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
  if (drawing.nodeName !== "svg") return { element: h("p", {}, "A network of so many spaces is not drawn."), light: () => {} };
  const light = (name) => {
    const moved = symmetries.find((one) => one.name === name);
    for (const part of drawing.querySelectorAll("[data-space], [data-tensor]")) {
      const on = moved && (moved.spaces.includes(part.dataset.space) || moved.tensors.includes(part.dataset.tensor));
      part.classList.toggle("lit", Boolean(on));
      part.classList.toggle("dim", Boolean(moved) && !on);
    }
  };
  return { element: scroll("diagram of spaces", document.adoptNode(drawing)), light };
}
