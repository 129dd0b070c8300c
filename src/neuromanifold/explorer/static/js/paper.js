// Paper: every statement, how it is known, and what computation says about it.
import { ask } from "./api.js";
import { choice, debounce, field, h, notice } from "./dom.js";
import { codeBox, dropZone, sessionFiles, work } from "./parts.js";

const VERDICT = { holds: ["good", "✓ holds"], corrected: ["warn", "✎ corrected"], conjecture: ["info", "? conjecture"], fails: ["bad", "✗ fails"] };
const STATUS = { theorem: ["good", "theorem"], conjecture: ["info", "conjecture"], none: ["muted", "no claim"] };

export async function render(root, parameters, remember) {
  const values = { search: parameters.get("search") ?? "", status: parameters.get("status") ?? "all" };
  let reports = await sessionFiles("evidence"), report = reports.at(-1) ?? null, wanted = parameters.get("id");
  const list = h("div", { class: "stack" }), head = h("div", {}), code = h("div", {});
  let all = [];
  const show = () => {
    const search = values.search.toLowerCase();
    const found = all.filter(({ text, one }) => text.includes(search) && (values.status === "all" || one.status === values.status || (values.status === "corrected" && one.correction)));
    list.replaceChildren(...found.map(({ element }) => element));
    if (!found.length) list.append(notice("warn", "No statement fits; search for something else."));
    head.textContent = `${found.length} of ${all.length} statements${report ? `, with the verdicts of ${report.name}` : ""}`;
    if (!wanted) remember(Object.fromEntries(Object.entries(values).filter(([key, value]) => value && value !== "all")));
  };
  const load = async () => {
    const answer = await ask(`/api/statements${report ? `?file=${report.id}` : ""}`);
    all = answer.statements.map((one) => ({ one, element: article(one), text: `${one.id} ${one.title} ${one.claim} ${one.source}`.toLowerCase() }));
    code.replaceChildren(codeBox(answer.code));
    show();
    if (wanted) { const there = all.find(({ one }) => one.id === wanted)?.element; there?.scrollIntoView(); there?.focus(); wanted = null; }
  };
  const search = h("input", { value: values.search, type: "search", on: { input: debounce(() => { values.search = search.value; show(); }, 120) } });
  root.replaceChildren(
    h("h1", {}, "What is claimed, and how is it known?"),
    h("p", { class: "lead" }, "Every numbered item of the paper and every result of this project, in our own words, with corrections. Each one can be checked here by computation, on a small grid."),
    h("div", { class: "columns" }, h("div", { class: "stack" },
      h("form", { class: "card controls", "aria-label": "which statements", on: { submit: (event) => event.preventDefault() } }, field("Search", search), field("Status", choice(["all", "theorem", "conjecture", "none", "corrected"], values.status, (value) => { values.status = value; show(); }))),
      h("section", { class: "card" }, h("h2", {}, "A report"), dropZone("Drop results.json of neuromanifold paper.", ["evidence"], async (kept) => { report = kept; await load().catch((error) => list.replaceChildren(notice("bad", error.message))); })),
      code), h("div", { class: "stack" }, h("p", { class: "muted", role: "status" }, head), list)));
  await load();
}

function article(one) {
  const outcome = h("div", { "aria-live": "polite" });
  const [kind, words] = STATUS[one.status];
  const claim = h("p", {});
  claim.innerHTML = one.claim; // set by the server from the registry: escaped, with italics and indices
  const correction = one.correction ? h("p", { class: "notice warn" }) : null;
  if (correction) { const text = h("span", {}); text.innerHTML = `<b>Corrected:</b> ${one.correction}`; correction.append(text); }
  const check = () => work(outcome, "check", { id: one.id }, (result) => {
    const [verdict, said] = VERDICT[result.verdict];
    return [h("p", {}, h("span", { class: `chip ${verdict}` }, said), ` ${result.checked} (${result.seconds.toFixed(1)} s)`), h("details", {}, h("summary", {}, "numbers and code"), h("pre", { tabindex: 0 }, JSON.stringify(result.evidence, null, 1)), h("pre", { tabindex: 0 }, result.code.command))];
  });
  return h("article", { class: `card statement ${one.status}`, id: one.id, tabindex: -1 },
    h("div", { class: "row" }, h("h2", {}, `${one.title[0].toUpperCase()}${one.title.slice(1)}`), h("span", { class: `chip ${kind}` }, words), one.report ? h("span", { class: `chip ${VERDICT[one.report.verdict][0]}` }, VERDICT[one.report.verdict][1]) : null),
    h("p", { class: "muted" }, `${one.id} · ${one.kind} · ${one.source}`), claim, correction,
    one.hypotheses.length ? h("details", {}, h("summary", {}, "hypotheses"), h("ul", {}, one.hypotheses.map((text) => h("li", {}, text)))) : null,
    one.report ? h("p", { class: "hint" }, `Report: ${one.report.checked}`) : null,
    h("p", {}, h("button", { type: "button", class: "quiet small", on: { click: check } }, "Check it now")), outcome);
}
