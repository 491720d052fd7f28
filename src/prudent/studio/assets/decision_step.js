// Step 2: a table of actions, editable in place, with utility lines drawn as one types.
import { utilityLines, colour } from "./charts.js";
import { field, h, put, s } from "./elements.js";
import { renderData } from "./data_step.js";
import { firstTable, isUsual, measureAgain, stopMeasuring } from "./state.js";

const $ = (id) => document.getElementById(id);

export function renderDecision(page) {
  const { problem } = page.state;
  const body = $("decision-body");
  if (!page.state.data) return put(body, h("p", { class: "empty" }, "What you can do, and what it is worth. Choose data first."));
  if (!problem) return offerTable(page, body);
  const payoffs = problem.kind === "payoffs";
  const chart = h("div", { id: "utility-lines" });
  const edit = (change) => { page.change((state) => change(state.problem)); drawLines(page); };
  const titles = payoffs ? problem.classes.map((name) => `if ${name}`)
    : [...problem.lower.map((_, j) => problem.lower.length > 1 ? `reward per unit of outcome ${j + 1}` : "reward per unit of outcome"), "cost"];
  const rows = problem.actions.map((action, i) => {
    const values = payoffs ? problem.payoffs[i] : [...problem.rewards[i], problem.costs[i]];
    const write = (next, j, value) => {
      if (payoffs) next.payoffs[i][j] = value;
      else if (j < next.rewards[i].length) next.rewards[i][j] = value;
      else next.costs[i] = value;
    };
    const dot = s("svg", { viewBox: "0 0 12 12", width: 12, height: 12, "aria-hidden": "true" }, s("circle", { cx: 6, cy: 6, r: 5, fill: colour(i) }));
    return h("tr", {},
      h("td", { class: "action" }, dot, h("input", { type: "text", maxlength: 200, value: action, "aria-label": `Name of action ${i + 1}`, oninput: (event) => edit((next) => { next.actions[i] = event.target.value; }) })),
      values.map((value, j) => h("td", {}, cell(value, `${action}: ${titles[j]}`, (number) => edit((next) => write(next, j, number))))),
      h("td", {}, h("button", { type: "button", class: "quiet", "aria-label": `Remove ${action}`, disabled: problem.actions.length === 1, onclick: () => page.change(({ problem: next }) => {
        for (const list of [next.actions, next.rewards, next.costs, next.payoffs]) list?.splice(i, 1);
      }, ["decision"]) }, "×")));
  });
  const add = () => page.change(({ problem: next }) => {
    let count = next.actions.length + 1;
    while (next.actions.includes(`action ${count}`)) count += 1;
    next.actions.push(`action ${count}`);
    if (payoffs) next.payoffs.push(next.classes.map(() => 0));
    else { next.rewards.push(next.lower.map(() => 0)); next.costs.push(0); }
  }, ["decision"]);
  const bounds = payoffs ? null : h("div", { class: "fields" }, problem.lower.map((_, j) => ["lower", "upper"].map((end) => field(
    `Outcome${problem.lower.length > 1 ? ` ${j + 1}` : ""}, ${end} bound`,
    cell(problem[end][j], null, (number) => edit((next) => { next[end][j] = number; }))))).flat());
  put(body, 
    h("fieldset", { class: "choice" }, h("legend", {}, "The outcome is"),
      radio("outcome-kind", "a number", !payoffs, () => becomeLinear(page)), radio("outcome-kind", "a class", payoffs, () => becomePayoffs(page))),
    h("p", { class: "hint" }, payoffs ? "Each cell is what the action is worth if the class is true." : "An action is worth reward × outcome − cost."),
    h("div", { class: "scroll" }, h("table", { class: "edit" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "action"), titles.map((title) => h("th", { scope: "col" }, title)), h("td", {}))),
      h("tbody", {}, rows))),
    h("div", { class: "buttons" }, h("button", { type: "button", onclick: add, disabled: problem.actions.length >= 50 }, "Add an action")),
    capacityField(page), bounds, payoffs ? classEditor(page) : dimensionEditor(page), chart);
  drawLines(page);
}

/** At most so many rows get an action; what is wrong with that stands under the field. */
function capacityField(page) {
  const { capacity, problem } = page.state, name = problem.actions.at(-1);
  return h("div", {}, field("Capacity: at most so many rows, or a share of them, get an action", h("input", {
    type: "text", value: capacity, placeholder: `such as ${name}=100 or ${name}=20%`, "aria-describedby": "capacity-error",
    oninput: (event) => page.change((next) => { next.capacity = event.target.value; }) })),
  h("div", { id: "capacity-error", class: "error", role: "alert", hidden: true }));
}

/** No decision could be guessed: the units are odd, or there was no column of numbers to guess from. */
function offerTable(page, body) {
  const { columns } = page.state;
  if (!columns?.forecast.every(Boolean)) return put(body, h("p", { class: "empty" }, "What you can do, and what it is worth. Choose the column of forecasts first."));
  const table = firstTable(page.state, page.summary);
  if (![...table.lower, ...table.upper].every(isUsual)) {
    return put(body, h("p", { class: "empty" }, "The numbers in these columns are too large for a decision: use other units in the file, such as thousands or millions, so that none is over 1e12, and bring it again."));
  }
  put(body, h("p", { class: "hint" }, "No decision could be guessed from these columns."), h("div", { class: "buttons" },
    h("button", { type: "button", onclick: () => page.change((next) => { next.problem = table; }, ["decision", "guarantee", "takeaway"]) }, "Start a table of actions")));
}

function drawLines(page) {
  put($("utility-lines"), utilityLines($("decision-body"), page.state.problem) ?? h("p", { class: "empty" }, "Lines appear once all numbers are there."));
}

export function cell(value, label, onnumber) {
  return h("input", { type: "number", step: "any", value: value ?? "", "aria-label": label, oninput: (event) => {
    const text = event.target.value;
    const number = text === "" || !Number.isFinite(Number(text)) ? null : Number(text);
    event.target.setAttribute("aria-invalid", String(number === null));
    onnumber(number);
  } });
}

export function radio(name, label, checked, onchange) {
  return h("label", { class: "option" }, h("input", { type: "radio", name, checked, onchange }), ` ${label}`);
}

function redraw(page) {
  renderData(page);
}

function dimensionEditor(page) {
  const { columns } = page.state, several = columns.forecast.length > 1;
  const change = (edit) => { page.change((state) => {
    edit(state);
    state.columns.outcome = state.columns.outcome.length ? state.columns.forecast.map((_, j) => state.columns.outcome[j] ?? "") : [];
  }, ["decision"]); redraw(page); };
  return h("div", { class: "buttons" },
    h("button", { type: "button", class: "quiet", disabled: columns.forecast.length >= 20, onclick: () => change(({ columns: next, problem }) => {
      next.forecast.push(""); problem.lower.push(0); problem.upper.push(1); problem.rewards.forEach((row) => row.push(0)); }) }, "Add an outcome column"),
    several ? h("button", { type: "button", class: "quiet", onclick: () => change(({ columns: next, problem }) => {
      next.forecast.pop(); problem.lower.pop(); problem.upper.pop(); problem.rewards.forEach((row) => row.pop()); }) }, "Remove the last") : null);
}

function classEditor(page) {
  const { problem } = page.state;
  const change = (edit) => { page.change((state) => edit(state), ["decision"]); redraw(page); };
  return h("div", {}, h("div", { class: "fields" }, problem.classes.map((name, j) => field(`Class ${j + 1}, as the file writes it`,
    h("input", { type: "text", maxlength: 200, value: name, onchange: (event) => rename(page, j, event.target.value) })))),
  h("div", { class: "buttons" },
    h("button", { type: "button", class: "quiet", disabled: problem.classes.length >= 20, onclick: () => change(({ problem: next, columns }) => {
      next.classes.push(`class ${next.classes.length + 1}`); next.payoffs.forEach((row) => row.push(0)); columns.forecast.push(""); }) }, "Add a class"),
    problem.classes.length > 2 ? h("button", { type: "button", class: "quiet", onclick: () => change(({ problem: next, columns }) => {
      next.classes.pop(); next.payoffs.forEach((row) => row.pop()); columns.forecast.pop(); }) }, "Remove the last class") : null));
}

/** Changes names in place: the focus is on its way to the next control, which must not be drawn anew. */
function rename(page, j, name) {
  page.change(({ problem }) => { problem.classes[j] = name; });
  const table = document.querySelector("#decision table.edit"), { problem } = page.state;
  table.querySelectorAll("thead th")[j + 1].textContent = `if ${name}`;
  for (const [i, row] of table.querySelectorAll("tbody tr").entries()) row.querySelectorAll("input[type=number]")[j].ariaLabel = `${problem.actions[i]}: if ${name}`;
  drawLines(page);
  redraw(page);
}

// What the other kind of outcome had before it was left, for these data.
let left = {};
function leave(page) {
  const { data, problem, columns } = page.state;
  left = { ...(left.data === data.id ? left : { data: data.id }), [problem.kind]: structuredClone({ problem, columns }) };
}

/** Numbers that the action had when this kind of outcome was left; actions may have been renamed or added since. */
function returning(kind, page) {
  const before = left.data === page.state.data.id ? left[kind] : undefined, { actions } = page.state.problem;
  if (!before) return null;
  const same = before.problem.actions.length === actions.length;
  return { ...before, row: (list, i) => list[same ? i : before.problem.actions.indexOf(actions[i])] };
}

function becomePayoffs(page) {
  leave(page);
  const before = returning("payoffs", page);
  page.change((state) => {
    const { actions } = state.problem, classes = before?.problem.classes ?? ["0", "1"];
    state.problem = { kind: "payoffs", actions, classes, payoffs: actions.map((_, i) => before?.row(before.problem.payoffs, i) ?? classes.map((_, j) => (Math.min(i, 1) === j ? 1 : 0))) };
    state.columns.forecast = before?.columns.forecast ?? [state.columns.forecast[0] ?? "", state.columns.forecast[1] ?? ""];
    keepOutcome(state, before?.columns.outcome ?? state.columns.outcome.slice(0, 1));
  }, ["decision", "guarantee", "takeaway"]);
  redraw(page);
}

function becomeLinear(page) {
  leave(page);
  const before = returning("linear", page);
  page.change((state) => {
    const { actions } = state.problem, find = (name) => page.summary?.columns.find((one) => one.name === name), column = find(state.columns.forecast[0]);
    const { lower, upper } = before?.problem ?? { lower: [Math.min(0, column?.lower ?? 0)], upper: [Math.max(1, column?.upper ?? 1)] };
    state.problem = { kind: "linear", actions, rewards: actions.map((_, i) => before?.row(before.problem.rewards, i) ?? lower.map(() => i)),
      costs: actions.map((_, i) => before?.row(before.problem.costs, i) ?? i / 2), lower, upper };
    state.columns.forecast = before?.columns.forecast ?? state.columns.forecast.slice(0, 1);
    const [outcome] = state.columns.outcome;
    keepOutcome(state, before?.columns.outcome ?? (find(outcome)?.kind === "number" ? [outcome] : []));
  }, ["decision", "guarantee", "takeaway"]);
  redraw(page);
}

function keepOutcome(state, outcome) {
  const before = state.columns.outcome.length;
  state.columns.outcome = outcome;
  if (!outcome.length) stopMeasuring(state); else if (!before) measureAgain(state);
}
