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
    skip: false, guarantee: "auto", slack: "audit", confidence: 0.95, pure: false,
  };
}

export const encode = (state) => "#" + encodeURIComponent(JSON.stringify(state));

export function decode(fragment) {
  if (fragment.length < 2) return emptyState();
  return checked(JSON.parse(decodeURIComponent(fragment.slice(1))));
}

const isText = (value) => typeof value === "string";
const isTexts = (value) => Array.isArray(value) && value.every(isText);
const isNumber = (value) => value === null || (typeof value === "number" && Number.isFinite(value));
const isNumbers = (value) => Array.isArray(value) && value.every(isNumber);
const isTable = (value) => Array.isArray(value) && value.every(isNumbers);

/** Refuses what is not a state; the server checks the numbers once more. */
export function checked(found) {
  const state = { ...emptyState(), ...found };
  const demand = (holds, what) => { if (!holds) throw new Error(`This is not a saved state: ${what}.`); };
  demand(found !== null && typeof found === "object" && !Array.isArray(found), "it is no object");
  demand(state.version === 1, "its version is unknown");
  demand(Object.keys(state).every((key) => key in emptyState()), "it has unknown parts");
  if (state.data !== null) demand(isText(state.data.id) && isText(state.data.name), "its data have no name");
  if (state.columns !== null) demand(isTexts(state.columns.forecast) && isTexts(state.columns.outcome), "its columns are no names");
  const problem = state.problem;
  if (problem !== null) {
    demand(isTexts(problem.actions), "its actions are no names");
    if (problem.kind === "payoffs") demand(isTexts(problem.classes) && isTable(problem.payoffs), "its payoffs are no table");
    else demand(problem.kind === "linear" && isTable(problem.rewards) && [problem.costs, problem.lower, problem.upper].every(isNumbers), "its decision is no table");
    const rows = problem.kind === "payoffs" ? problem.payoffs : problem.rewards;
    demand(rows.length === problem.actions.length, "its decision has not one row per action");
  }
  demand(state.guarantee === "auto" || (isTexts(state.guarantee) && state.guarantee.every((name) => name in RUNGS)), "its guarantee is unknown");
  demand(state.slack === "audit" || isNumber(state.slack), "its slack is no number");
  demand(isNumber(state.confidence) && typeof state.pure === "boolean" && typeof state.skip === "boolean", "its settings are no settings");
  return state;
}

/** Says what is missing before a question can be asked; an empty text if nothing is. */
export function missing(state) {
  if (!state.data) return "Bring data first.";
  if (!state.columns || !state.problem) return "Choose the column of forecasts.";
  if (state.columns.forecast.some((name) => !name)) return "Choose a column for every forecast.";
  if (state.columns.outcome.some((name) => !name)) return "Choose a column for every outcome.";
  const { problem } = state;
  if (problem.actions.some((name) => !name.trim())) return "Every action needs a name.";
  if (new Set(problem.actions).size < problem.actions.length) return "Two actions have the same name.";
  const numbers = problem.kind === "payoffs"
    ? problem.payoffs.flat() : [...problem.rewards.flat(), ...problem.costs, ...problem.lower, ...problem.upper];
  if (numbers.some((value) => value === null)) return "A number is missing in the decision.";
  if (problem.kind === "linear" && problem.lower.some((low, j) => low >= problem.upper[j])) return "The outcome's upper bound must lie above its lower bound.";
  if (state.slack === null) return "The slack is not a number.";
  if (state.guarantee !== "auto" && !state.guarantee.length) return "Pick at least one guarantee.";
  if (state.confidence === null || !(state.confidence >= 0.5 && state.confidence <= 0.999999)) return "The confidence must lie between 0.5 and 0.999999.";
  return "";
}

/** What the server is asked; parts that a result does not depend on are left at their defaults. */
export function question(state, { ladder = false, verdict = false } = {}) {
  const { data, columns, problem, skip, guarantee, slack, confidence, pure } = state;
  const whole = { data: data.id, columns, problem, skip_broken_rows: skip, guarantee, slack, confidence, pure };
  if (ladder) return { ...whole, guarantee: "auto", slack: "audit", pure: false };
  if (verdict) return { ...whole, slack: "audit", pure: false };
  return whole;
}
