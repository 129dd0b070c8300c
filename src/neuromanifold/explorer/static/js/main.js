// The router: `#/view?field=value` names a view and everything it shows.
import { ask } from "./api.js";
import { h, notice } from "./dom.js";

const VIEWS = {
  network: "Network", fiber: "Fiber", geometry: "Geometry", atlas: "Atlas", checkpoint: "Checkpoint", paper: "Paper",
};
const main = document.getElementById("main");
let shown = 0;

const nav = document.getElementById("nav");
nav.append(...Object.entries(VIEWS).map(([view, title]) => h("a", { href: `#/${view}`, "data-view": view }, title)));

async function show() {
  const [, path = "network", query = ""] = /^#?\/?([a-z]*)\??(.*)$/.exec(location.hash) ?? [];
  const view = path in VIEWS ? path : "network";
  const turn = ++shown;
  for (const link of nav.children) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${VIEWS[view]} · neuromanifold explorer`;
  const root = h("div", {});
  try {
    const module = await import(`./${view}.js`);
    if (turn !== shown) return;
    main.replaceChildren(root);
    await module.render(root, new URLSearchParams(query), (parameters) => {
      // Only the view that is shown may write the address.
      if (turn === shown) history.replaceState(null, "", `#/${view}?${new URLSearchParams(parameters)}`);
    });
  } catch (error) {
    if (turn === shown) main.replaceChildren(h("h1", {}, VIEWS[view]), notice("bad", error.message));
  }
}

const themes = ["system", "light", "dark"];
const dark = matchMedia("(prefers-color-scheme: dark)");
const button = document.getElementById("theme");
let theme = themes.includes(localStorage.getItem("theme")) ? localStorage.getItem("theme") : "system";

function applyTheme() {
  document.documentElement.dataset.theme = theme === "system" ? (dark.matches ? "dark" : "light") : theme;
  button.textContent = `Theme: ${theme}`;
  window.dispatchEvent(new Event("themechange"));
}
button.addEventListener("click", () => {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  localStorage.setItem("theme", theme);
  applyTheme();
});
dark.addEventListener("change", applyTheme);
applyTheme();

window.addEventListener("hashchange", async () => {
  scrollTo(0, 0);  // a view begins at its top, unless it goes to a place of its own
  await show();
  main.focus({ preventScroll: true });
});
show();
ask("/api/session").then(
  ({ version, files }) => {
    const named = files.filter((file) => file.origin === "named").map((file) => file.name);
    document.getElementById("footer").textContent = `neuromanifold ${version} · this page is served by this machine and asks nobody else${named.length ? ` · open: ${named.join(", ")}` : ""}`;
  },
  (error) => document.getElementById("footer").append(notice("bad", error.message)),
);
