// Step 1: the file, its columns, and the rows that break rules.
import { counted, field, h, number, put, tableOf } from "./elements.js";
import { measureAgain, stopMeasuring } from "./state.js";

const EVERY = ["day", "week", "month", "quarter", "year"];
const $ = (id) => document.getElementById(id);

export function renderData(page) {
  const { summary, state } = page;
  $("drop").classList.toggle("small", summary !== null);
  $("data-error").hidden = true;
  if (!summary) return put($("data-summary"));
  const columns = state.columns ?? noColumns(), context = columns.context ?? [];
  const names = summary.columns.map((column) => column.name);
  const one = (label, value, edit, none) => select(label, names, value, none, (chosen) => {
    page.change((next) => { next.columns ??= noColumns(); edit(next.columns, chosen || null); adapt(page); }, ["decision", "guarantee", "takeaway"]);
  });
  const classes = state.problem?.kind === "payoffs" ? state.problem.classes : null;
  const forecasts = columns.forecast.map((name, j) => one(
    classes ? `Probability of ${classes[j]}` : columns.forecast.length > 1 ? `Forecast ${j + 1}` : "Forecast", name,
    (next, chosen) => { next.forecast[j] = chosen ?? ""; }, name ? null : "choose …"));
  const outcomes = classes || columns.forecast.length === 1 || !columns.outcome.length
    ? [one(classes ? "Outcome (class)" : "Outcome", columns.outcome[0] ?? "", (next, chosen) => {
      const before = next.outcome.length;
      next.outcome = chosen === null ? [] : classes || next.forecast.length === 1 ? [chosen] : next.forecast.map((_, j) => (j ? "" : chosen));
      if (!next.outcome.length) stopMeasuring(page.state); else if (!before) measureAgain(page.state);
      renderData(page);
    }, "none")]
    : columns.outcome.map((name, j) => one(`Outcome ${j + 1}`, name, (next, chosen) => { next.outcome[j] = chosen ?? ""; }, name ? null : "choose …"));
  put($("data-summary"), 
    h("p", { class: "summary" }, h("strong", {}, summary.name), ` · ${counted(summary.rows, "row")}, ${counted(names.length, "column")}. ${summary.guess.sentence}`),
    h("div", { class: "fields" }, ...forecasts, ...outcomes,
      one("Weight", columns.weight ?? "", (next, chosen) => { next.weight = chosen; }, "none"),
      one("Period (day, month, site)", columns.period ?? "", (next, chosen) => { next.period = chosen; next.every = null; renderData(page); }, "none"),
      columns.period ? select("Where it is a date: every", EVERY, columns.every ?? "", "as it is", (chosen) => page.change((next) => { next.columns.every = chosen || null; }, ["decision", "guarantee", "takeaway"])) : null,
      ...[...context, ""].slice(0, 20).map((name, j) => one(j ? `Also known at decision time (${j + 1})` : "Known at decision time (region, product)", name, (next, chosen) => {
        next.context = [...context.slice(0, j), chosen, ...context.slice(j + 1)].filter((each, k, all) => each && all.indexOf(each) === k);
        renderData(page);
      }, "none")),
      one("Record id (for draws in SQL)", columns.key ?? "", (next, chosen) => { next.key = chosen; }, "none")),
    state.skip ? h("label", { class: "option" }, h("input", { type: "checkbox", id: "skip-rows", checked: true, onchange: () => page.change((next) => { next.skip = false; }, ["data"]) }), " leave out rows that break a rule") : null,
    h("details", {}, h("summary", {}, "All columns"), tableOf("All columns", ["column", "holds", "smallest", "largest", "first values"],
      summary.columns.map((column) => [h("th", { scope: "row" }, column.name), column.kind === "number" ? "numbers" : "text",
        number(column.lower), number(column.upper), column.values.slice(0, 4).join(", ")]))));
}

const noColumns = () => ({ forecast: [""], outcome: [], weight: null, key: null, period: null, every: null, context: [] });

/** Keeps the decision table as wide as there are forecasts. */
function adapt(page) {
  const { columns, problem } = page.state;
  if (!problem || problem.kind === "payoffs") return;
  const width = columns.forecast.length;
  const fit = (row, filler) => { row.length = Math.min(row.length, width); while (row.length < width) row.push(filler); };
  problem.rewards.forEach((row) => fit(row, 0));
  fit(problem.lower, 0);
  fit(problem.upper, 1);
}

function select(label, names, value, none, onchange) {
  const options = names.map((name) => h("option", { value: name, selected: name === value }, name));
  if (none !== null) options.unshift(h("option", { value: "", selected: !value }, none));
  if (value && !names.includes(value)) options.unshift(h("option", { value, selected: true }, `${value} (missing)`));
  return field(label, h("select", { onchange: (event) => onchange(event.target.value) }, ...options));
}

export function showDataError(refusal, page = null) {
  const box = $("data-error");
  const rows = refusal.rows ?? [];
  put(box, h("p", {}, refusal.message));
  if (rows.length) {
    box.append(h("p", {}, rows.length >= 100 ? "The first 100 rows that break a rule:" : `${rows.length} row${rows.length > 1 ? "s break" : " breaks"} a rule:`),
      tableOf("Rows that break a rule", ["row", "column", "what is wrong"], rows.map((row) => [row.row.toLocaleString("en"), row.columns.join(", "), row.message])));
    if (page && !page.state.skip) {
      box.append(h("p", {}, h("button", { type: "button", id: "go-on", onclick: () => page.change((next) => { next.skip = true; }, ["data"]) }, "Go on without the rows that break a rule"), " The answer then says how many they were; it does not speak of rows like them."));
    }
  }
  box.hidden = false;
}
