// The whole state of a tab: one small JSON in the fragment of the address.
export const RUNGS = {
  nothing: "Nothing is known",
  unbiased: "Right on average",
  "self-orthogonal": "Errors do not follow the forecast",
  bins: "Right within bins",
  "utility-calibrated": "The promised utility is right",
  "decision-calibrated": "Right within each action's region",
};

export function emptyState() {
  return {
    version: 1, data: null, columns: null, problem: null,
    skip: false, guarantee: "auto", slack: "audit", confidence: 0.95, capacity: "",
  };
}

export const encode = (state) => "#" + encodeURIComponent(JSON.stringify(state));

export function decode(fragment) {
  if (fragment.length < 2) return emptyState();
  return checked(JSON.parse(decodeURIComponent(fragment.slice(1))));
}

const isText = (value) => typeof value === "string" && value.isWellFormed();
const isTexts = (value, least = 0, most = 20) => Array.isArray(value) && value.every(isText) && value.length >= least && value.length <= most;
const isNumber = (value) => value === null || (typeof value === "number" && Number.isFinite(value));
const isNumbers = (value, length) => Array.isArray(value) && value.every(isNumber) && value.length === length;
const isTable = (value, rows, width) => Array.isArray(value) && value.length === rows && value.every((row) => isNumbers(row, width));
/** True for an object that has these parts, perhaps those, and no others. */
const has = (value, parts, perhaps = []) => value !== null && typeof value === "object" && !Array.isArray(value)
  && parts.every((part) => Object.hasOwn(value, part)) && Object.keys(value).every((part) => parts.includes(part) || perhaps.includes(part));
const isExample = (name) => isText(name) && Array.from(document.querySelectorAll("[data-example]")).some((button) => button.dataset.example === name);

/** Refuses what is not a state; the server checks the numbers once more. */
export function checked(found) {
  const demand = (holds, what) => { if (!holds) throw new Error(`This is not a saved state: ${what}.`); };
  demand(found !== null && typeof found === "object" && !Array.isArray(found), "it is no object");
  const state = { ...emptyState(), ...found };
  delete state.pure; // in links of before
  demand(state.version === 1, "its version is unknown");
  demand(Object.keys(state).every((key) => Object.hasOwn(emptyState(), key)), "it has unknown parts");
  const { data, columns, problem } = state;
  if (data !== null) {
    demand(has(data, ["id", "name"], ["example"]) && isText(data.id) && /^[0-9a-f]{32}$/.test(data.id) && isText(data.name), "its data have no name");
    demand(!Object.hasOwn(data, "example") || isExample(data.example), "its example is unknown");
  }
  if (columns !== null) {
    demand(has(columns, ["forecast", "outcome"], ["weight", "key", "period", "every", "context"]) && isTexts(columns.forecast, 1) && isTexts(columns.outcome) && isTexts(columns.context ?? [])
      && [columns.weight, columns.key, columns.period, columns.every].map((name) => name ?? null).every((name) => name === null || isText(name)), "its columns are no names");
  }
  if (problem !== null) checkProblem(problem, columns, demand);
  demand(state.guarantee === "auto" || (isTexts(state.guarantee) && state.guarantee.every((name) => Object.hasOwn(RUNGS, name))), "its guarantee is unknown");
  demand(state.slack === "audit" || isNumber(state.slack), "its slack is no number");
  demand(isNumber(state.confidence) && typeof state.skip === "boolean" && isText(state.capacity), "its settings are no settings");
  return state;
}

function checkProblem(problem, columns, demand) {
  const payoffs = problem.kind === "payoffs", parts = payoffs ? ["classes", "payoffs"] : ["rewards", "costs", "lower", "upper"];
  demand(payoffs || problem.kind === "linear", "its decision is of no known kind");
  demand(has(problem, ["kind", "actions", ...parts]), "its decision lacks parts or has unknown ones");
  demand(isTexts(problem.actions, 1, 50), "its actions are no names");
  const rows = problem.actions.length, width = (payoffs ? problem.classes : problem.lower)?.length;
  if (payoffs) demand(isTexts(problem.classes, 2) && isTable(problem.payoffs, rows, width), "its payoffs are no table");
  else demand(width >= 1 && width <= 20 && isTable(problem.rewards, rows, width) && isNumbers(problem.costs, rows) && [problem.lower, problem.upper].every((ends) => isNumbers(ends, width)), "its decision is no table");
  demand(columns !== null, "its decision is about no columns");
  demand(columns.forecast.length === width && [0, payoffs ? 1 : width].includes(columns.outcome.length), "its columns do not fit its decision");
}

/** A decision to start from, on columns whose smallest and largest values are known. */
export function firstTable({ columns: names }, summary) {
  const used = summary?.columns.filter((column) => [...names.forecast, ...names.outcome].includes(column.name) && column.kind === "number") ?? [];
  const width = names.forecast.length, low = Math.min(0, ...used.map((column) => column.lower)), high = Math.max(1, ...used.map((column) => column.upper));
  return { kind: "linear", actions: ["do nothing", "act"], rewards: [names.forecast.map(() => 0), names.forecast.map(() => 1)], costs: [0, 0],
    lower: Array(width).fill(low), upper: Array(width).fill(high) };
}

export const isUsual = (value) => typeof value !== "number" || value === 0 || (Math.abs(value) >= 1e-12 && Math.abs(value) <= 1e12);

/** Says what is missing before a question can be asked; an empty text if nothing is. */
export function missing(state) {
  if (!state.data) return "Choose data first.";
  if (!state.columns) return "Choose the column of forecasts.";
  if (state.columns.forecast.some((name) => !name)) return "Choose a column for every forecast.";
  if (state.columns.outcome.some((name) => !name)) return "Choose a column for every outcome.";
  const { problem } = state;
  if (!problem) return "Describe the decision in step 2.";
  if (problem.actions.some((name) => !name.trim())) return "Every action needs a name.";
  if (new Set(problem.actions).size < problem.actions.length) return "Two actions have the same name.";
  const numbers = problem.kind === "payoffs"
    ? problem.payoffs.flat() : [...problem.rewards.flat(), ...problem.costs, ...problem.lower, ...problem.upper];
  if (numbers.some((value) => value === null)) return "A number is missing in the decision.";
  if (![...numbers, state.slack].every(isUsual)) return "Numbers must be 0 or between 1e-12 and 1e12 in size; use other units.";
  if (problem.kind === "linear" && problem.lower.some((low, j) => low >= problem.upper[j])) return "The outcome's upper bound must lie above its lower bound.";
  if (state.slack === null) return "The slack is not a number.";
  if (state.slack < 0) return "The slack must be 0 or more.";
  if (state.guarantee !== "auto" && !state.guarantee.length) return "Pick at least one guarantee.";
  if (state.confidence === null || !(state.confidence >= 0.5 && state.confidence <= 0.999999)) return "The confidence must lie between 0.5 and 0.999999.";
  return "";
}

/** Without outcomes nothing can be measured: people say what holds. */
let measuring = null;
export function stopMeasuring(state) {
  measuring = { guarantee: state.guarantee, slack: state.slack };
  Object.assign(state, byHand(measuring));
}
const byHand = ({ guarantee, slack }) => ({ guarantee: guarantee === "auto" ? ["self-orthogonal"] : guarantee, slack: slack === "audit" ? 0 : slack });

/** There are outcomes again: what was measured before is, unless people said otherwise since. */
export function measureAgain(state) {
  const before = measuring ?? { guarantee: "auto", slack: "audit" }, { guarantee, slack } = state;
  if (JSON.stringify(byHand(before)) === JSON.stringify({ guarantee, slack })) Object.assign(state, before);
}

/** The limits in a text such as "treat=100, call=20%": a comma or semicolon after one begins the next. */
const limits = (text) => text.split(/(?<=[\d%])\s*[,;](?=.*=)/).map((limit) => limit.trim()).filter(Boolean);

/** What the server is asked; parts that a result does not depend on are left at their defaults. */
export function question(state, { ladder = false, verdict = false } = {}) {
  const { data, columns, problem, skip, guarantee, slack, confidence } = state;
  const whole = { data: data.id, columns, problem, skip_broken_rows: skip, guarantee, slack, confidence, capacity: limits(state.capacity) };
  if (ladder) return { ...whole, guarantee: "auto", slack: "audit", capacity: [] };
  if (verdict) return { ...whole, slack: "audit" };
  return whole;
}
