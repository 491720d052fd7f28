// Step 4: verdict, numbers, policy map, belief, reasons, stress test.
import { beliefLine, fitted, groupedBars, legend, policyMap } from "./charts.js";
import { exampleRows, regionMap } from "./maps.js";
import { beside, field, h, number, percent, put, stackedTable, tableOf } from "./elements.js";
import { cell } from "./decision_step.js";
import { digest, post } from "./service.js";
import { question, RUNGS } from "./state.js";

const $ = (id) => document.getElementById(id);
const ACTS_ON = {
  forecast: ["What it acts on", "The forecast itself."],
  recalibrated: ["What it acts on", "The recalibrated forecast, at each forecast."],
  "worst case": ["The worst-case belief", "The mean outcome that the policy is prepared for, at each forecast."],
};
// What the rule looks at besides the forecast: the values of each column, and the one of them to explain.
let map = null, point = null, asked = 0, context = {}, known = {};

export function clearAnswer() {
  for (const id of ["verdict", "policy", "explain", "stress"]) $(id).replaceChildren();
  map = point = null;
  context = {};
  asked += 1;
}

export function showVerdict(answer) {
  const { kind, sentence } = answer.verdict, [heading] = sentence.split(": ", 1), rest = sentence.slice(heading.length + 2);
  const menu = answer.menu.columns, titles = Object.keys(menu), [names] = Object.values(menu);
  put($("verdict"), h("div", { class: `verdict ${kind}` }, h("h3", {}, heading), h("p", {}, rest[0].toUpperCase() + rest.slice(1)),
    answer.next_period ? h("p", { id: "next-period" }, `In the next period this rule earns at least ${number(answer.next_period.lower)} a case (${percent(answer.next_period.confidence)} confidence).`) : null),
    inWords("Share of the cases that each action gets", ["action", "rule in use", "advised"], Object.entries(answer.actions).map(([action, shares]) => [action, ...shares.map(percent)])),
    answer.by_segment ? inWords("Segment by segment, a case of it", Object.keys(answer.by_segment.columns), byRow(answer.by_segment.columns), true) : null,
    names.length ? inWords("What else was tried: gains a case over the rule in use", titles, byRow(menu)) : null);
  $("verdict").dataset.kind = kind;
}

export function showPolicy(page, answer) {
  const { guarantee } = page.state, names = guarantee === "auto" ? "" : guarantee.map((name) => RUNGS[name].toLowerCase()).join(" and ");
  const write = beside(answer.cards.map((card) => card.value));
  const card = ({ title, value, hint }) => h("div", { class: "card" }, h("dt", {}, title), h("dd", {}, h("strong", {}, write(value)), h("span", {}, hint)));
  const parts = [
    answer.left_out ? h("p", { id: "left-out", class: "caution" }, `${answer.left_out}.`) : null,
    page.state.columns.outcome.length ? null : h("div", { class: "verdict" }, h("h3", {}, "Nothing is measured"),
      h("p", {}, `There are no outcomes. If the guarantee holds as you say, the policy earns at least ${write(answer.cards[0].value)} on average.`)),
    names ? h("p", { class: "hint" }, `You explore what could be relied on without looking at outcomes: the robust policy for worlds where ${names}. The advice above does not depend on it.`) : null,
    h("dl", { class: "cards" }, ...answer.cards.map(card))];
  context = answer.context;
  const looks = Object.keys(context);
  if (answer.curve) {
    const edge = beside(answer.curve.forecast[0], answer.curve.forecast.at(-1));
    map = fitted($("policy"), (width) => policyMap(width, answer, (value) => explainAt(page, [value])));
    parts.push(h("h3", {}, "What to do at which forecast"), h("figure", {}, map, legend(answer.actions)),
      inWords("Thresholds as a table", ["from", "to", "play"], answer.bands.map((band) => [edge(band.first), edge(band.last), band.played])),
      h("h3", {}, ACTS_ON[answer.curve.acts_on][0]), h("p", { class: "hint" }, ACTS_ON[answer.curve.acts_on][1]), fitted($("policy"), (width) => beliefLine(width, answer.curve)));
  } else {
    map = null;
    if (answer.regions) {
      const { problem, columns } = page.state, titles = problem.kind === "payoffs" ? problem.classes : columns.forecast;
      const around = { lower: problem.lower, upper: problem.upper, titles };
      map = fitted($("policy"), (width) => regionMap(width, answer, around, (forecast) => explainAt(page, forecast)));
      parts.push(h("h3", {}, "What to do at which forecast"),
        h("p", { class: "hint" }, "Colour and name of the likeliest action, fainter where it is played less often; circles show where forecasts are."),
        h("figure", {}, map, legend(answer.actions)), inWords("The map as a table", [...titles, "play"], exampleRows(answer)));
    }
    if (looks.length) parts.push(h("p", { class: "hint" }, `The rule also looks at ${looks.join(" and ")}, so that no one map shows it.`));
    parts.push(h("h3", {}, "How often each action is played"), fitted($("policy"), (width) => groupedBars(width, answer.actions,
      [{ name: "this policy", values: answer.shares }, { name: "following the forecast", values: answer.shares_best_respond }],
      `Shares of the actions: ${answer.actions.map((name, i) => `${name} ${percent(answer.shares[i])}`).join(", ")}.`, percent)));
  }
  put($("policy"), ...parts);
  $("policy").dataset.guaranteed = String(answer.cards[0].value);
  renderExplain(page);
}

/** The rows of a table that has words and numbers by column. */
const byRow = (table) => Object.values(table)[0].map((_, i) => Object.values(table).map((column) => typeof column[i] === "number" ? number(column[i]) : column[i]));

const inWords = (title, columns, rows, open = false) => h("details", { open }, h("summary", {}, title), tableOf(title, columns, rows));

/** One forecast, chosen by hovering the map, by a slider or by numbers. */
export function renderExplain(page) {
  const { problem } = page.state, panel = $("explain");
  if (!problem || !$("policy").childElementCount) return put(panel);
  const size = problem.kind === "payoffs" ? problem.classes.length : problem.lower.length;
  const inside = problem.kind === "payoffs" || point?.every((value, j) => value >= problem.lower[j] && value <= problem.upper[j]);
  if (point?.length !== size || !inside) point = problem.kind === "payoffs" ? problem.classes.map(() => 1 / size) : problem.lower.map((low, j) => (low + problem.upper[j]) / 2);
  const labels = problem.kind === "payoffs" ? problem.classes.map((name, j) => `Probability of ${name}${j + 1 < size ? "" : " (the rest)"}`) : problem.lower.map((_, j) => size > 1 ? `Forecast of ${page.state.columns.forecast[j]}` : "Forecast");
  const inputs = size === 1
    ? [h("input", { type: "range", id: "explain-slider", min: problem.lower[0], max: problem.upper[0], step: "any", value: point[0], "aria-label": "Forecast to explain", oninput: (event) => explainAt(page, [event.target.valueAsNumber]) })]
    : labels.map((label, j) => field(label, cell(Number(point[j].toPrecision(4)), null, () => typed(page))));
  // Probabilities add up to one: the last is what the others leave.
  if (problem.kind === "payoffs") inputs.at(-1).querySelector("input").readOnly = true;
  known = Object.fromEntries(Object.entries(context).map(([name, values]) => [name, values.includes(known[name]) ? known[name] : values[0]]));
  for (const [name, values] of Object.entries(context)) {
    inputs.push(field(name, h("select", { onchange: (event) => { known[name] = values[event.target.selectedIndex]; explainPoint(page); } },
      values.map((each) => h("option", { selected: each === known[name] }, String(each))))));
  }
  put(panel, h("h3", {}, "Why?"), h("p", { class: "hint" }, size === 1 ? `${map ? "Hover the map or move" : "Move"} the slider to a forecast.` : map ? "Hover the map or type a forecast." : "Type a forecast."),
    h("div", { class: "fields wide" }, ...inputs), h("p", { id: "story", class: "story", "aria-live": "polite" }, "…"));
  map?.point(point);
}

/** Asks why at the forecast that was pointed at last. */
export function explainPoint(page) {
  if ($("story") && point) explainAt(page, point);
}

/** Asks why at the forecast in the boxes, or says what is wrong with it. */
function typed(page) {
  const { problem, columns } = page.state, boxes = Array.from(document.querySelectorAll("#explain .fields input"));
  const forecast = boxes.map((box) => box.valueAsNumber), rest = boxes.at(-1);
  let wrong = "";
  if (problem.kind === "payoffs") {
    const given = forecast.slice(0, -1), sum = given.reduce((a, b) => a + b, 0);
    if (given.some((chance) => !(chance >= 0 && chance <= 1))) wrong = "Every probability must be a number between 0 and 1.";
    else if (sum > 1 + 1e-12) wrong = `The probabilities add up to ${number(sum)}; together they may be 1 at most.`;
    forecast[given.length] = Math.max(0, Number((1 - sum).toFixed(12)));
    rest.value = wrong ? "" : Number(forecast.at(-1).toPrecision(4));
  } else {
    const outside = forecast.findIndex((value, j) => !(value >= problem.lower[j] && value <= problem.upper[j]));
    if (outside >= 0) wrong = `The forecast of ${columns.forecast[outside]} must be a number between ${number(problem.lower[outside])} and ${number(problem.upper[outside])}.`;
  }
  if (!wrong) return explainAt(page, forecast);
  asked += 1;
  tell(wrong);
}

/** What was asked about older inputs is not told any more. */
export function forgetExplanation() {
  asked += 1;
  $("explain").classList.add("stale");
}

async function explainAt(page, forecast) {
  point = forecast;
  map?.point(forecast);
  const shown = document.querySelectorAll("#explain .fields input");
  for (const [j, input] of shown.entries()) if (document.activeElement !== input) input.value = shown.length > 1 ? Number(forecast[j].toPrecision(4)) : forecast[j];
  const ticket = (asked += 1);
  await new Promise((done) => setTimeout(done, 50));
  if (ticket !== asked || $("policy").dataset.current === "false") return;
  const body = JSON.stringify({ question: question(page.state), forecast, context: known });
  try {
    const answer = await (await post("/api/explain", body)).json();
    const right = answer.inputs === (await digest(body));
    if (ticket === asked && right) tell(answer.story);
  } catch (refusal) {
    if (ticket === asked) tell(refusal.message);
  }
}

/** The panel may have been cleared while the answer was on its way: going back can lead to a state without one. */
function tell(text) {
  const story = $("story");
  if (story) story.textContent = text;
  $("explain").classList.toggle("stale", $("policy").dataset.current === "false");
}

export function showStress({ names, nominal, realised, worst, under }) {
  const series = [{ name: "if forecasts are right", values: nominal }, { name: "on these outcomes", values: realised }, { name: "in its own worst world", values: worst }].filter(({ values }) => values);
  const titles = [...series.map((one) => one.name), ...names.map((name) => `worst for ${name}`)];
  const rows = names.map((_, i) => [...series.map((one) => one.values[i]), ...under[i]]), write = beside(rows.flat());
  put($("stress"), h("h3", {}, "Stress test"), fitted($("stress"), (width) => groupedBars(width, names, series, `Mean utility in several worlds. In its own worst world: ${names.map((name, i) => `${name} ${write(worst[i])}`).join(", ")}.`, write)),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Stress test" }, stackedTable({ "aria-label": "Stress test" }, ["policy", ...titles],
      names.map((name, i) => h("tr", { role: "row" }, h("th", { scope: "row", role: "rowheader" }, name),
        rows[i].map((value, j) => h("td", { role: "cell", "data-title": titles[j] }, write(value))))))));
}
