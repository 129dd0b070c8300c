// Elements from plain descriptions: no markup is ever made from text.
const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    else if (name === "value") element.value = value;
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
export const s = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

export const notice = (kind, sentence) => h("p", { class: `notice ${kind}`, role: kind === "bad" ? "alert" : "status" }, h("span", {}, sentence));

// A part that scrolls by itself, with the keyboard too.
export const scroll = (label, ...children) => h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, children);

let count = 0;
export const fresh = (name) => `${name}-${++count}`;

export function field(label, control, hint) {
  control.id ||= fresh("field");
  return h("div", { class: "field" }, h("label", { for: control.id }, label, hint ? h("small", {}, " ", indexed(hint)) : null), control);
}

export function choice(options, value, onChange) {
  const select = h("select", { on: { change: () => onChange(select.value) } }, options.map((o) => h("option", { value: o, selected: o === value }, o)));
  return select;
}

export const compact = (number) => {
  if (number === null || number === undefined) return "–";
  if (typeof number !== "number") return String(number);
  if (Number.isInteger(number)) return number.toLocaleString("en-US");
  if (number !== 0 && Math.abs(number) < 1e-3) return number.toExponential(1);
  return String(+number.toPrecision(4));
};

// Text with its indices set: GL_{d_i} has one.
export const indexed = (text) => text.split(/_(\{[^}]*\}|\w)/).map((part, k) => (k % 2 ? h("sub", {}, indexed(part.replace(/[{}]/g, ""))) : part));

export function debounce(action, milliseconds) {
  let timer;
  return (...args) => { clearTimeout(timer); timer = setTimeout(() => action(...args), milliseconds); };
}
