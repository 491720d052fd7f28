// Step 3: the ladder of guarantees, with what holds on these data; one or several; slack.
import { rungMark } from "./charts.js";
import { beside, field, h, percent, put, stackedTable } from "./elements.js";
import { cell, radio } from "./decision_step.js";
import { RUNGS } from "./state.js";

const $ = (id) => document.getElementById(id);
export const UNMEASURED = "Without outcomes nothing is measured: you say what holds.";
const TITLES = ["guarantee", "holds here", "slack", "guarantees ●", "if right ◆"];
let best = null;

/** Slack grows with the square of the slider, so that small values have room. */
const ceiling = (problem) => problem.kind === "payoffs" ? 0.5 : Math.max(...problem.lower.map((low, j) => (problem.upper[j] ?? 1) - low).filter(Number.isFinite), 1e-9) / 2;
const fromSlider = (position, most) => Number((most * (position / 1000) ** 2).toPrecision(3));
const toSlider = (slack, most) => Math.round(1000 * Math.sqrt(Math.min(1, Math.max(0, slack / most))));

export function renderGuarantee(page) {
  const { state } = page, body = $("guarantee-body");
  if (!state.problem || !state.data) {
    return put(body, h("p", { class: "empty" }, `What is known about the forecaster's errors. ${state.data ? "Describe the decision" : "Choose data"} first.`));
  }
  const measured = state.columns?.outcome.length > 0, automatic = state.guarantee === "auto";
  const pick = (name, on) => page.change((next) => {
    const chosen = new Set(next.guarantee === "auto" ? [] : next.guarantee);
    if (on) chosen.add(name); else chosen.delete(name);
    next.guarantee = Object.keys(RUNGS).filter((rung) => chosen.has(rung));
    if (!next.guarantee.length && measured && next.slack === "audit") next.guarantee = "auto";
  }, ["guarantee"]);
  const value = (kind, title) => h("td", { role: "cell", class: kind, "data-title": title }, kind === "picture" ? "" : "–");
  const rungs = Object.entries(RUNGS).map(([name, title]) => h("tr", { role: "row", "data-rung": name },
    h("td", { role: "cell" }, h("label", { class: "option" }, h("input", { type: "checkbox", checked: !automatic && state.guarantee.includes(name), onchange: (event) => pick(name, event.target.checked) }), ` ${title}`)),
    value("holds", TITLES[1]), value("slack", TITLES[2]), value("worth", TITLES[3]), value("picture", TITLES[4])));
  const most = ceiling(state.problem), byHand = state.slack !== "audit";
  const set = (value) => { page.change((next) => {
    next.slack = value;
    if (automatic) next.guarantee = [best ?? "self-orthogonal"];
  }, automatic ? ["guarantee"] : []); };
  const box = cell(byHand ? state.slack : "", "Slack", (value) => { set(value); slider.value = toSlider(value ?? 0, most); });
  const slider = h("input", { type: "range", min: 0, max: 1000, value: byHand ? toSlider(state.slack ?? 0, most) : 0, "aria-label": "Slack slider: left is exact, right is almost no guarantee",
    oninput: (event) => { const value = fromSlider(event.target.valueAsNumber, most); box.value = value; box.removeAttribute("aria-invalid"); set(value); } });
  put(body, 
    h("fieldset", { class: "choice" }, h("legend", {}, "Show"),
      radio("rung-choice", "the advised rule", automatic, () => page.change((next) => { next.guarantee = "auto"; next.slack = "audit"; }, ["guarantee"])),
      radio("rung-choice", "the robust policy for guarantees that I pick", !automatic, () => page.change((next) => { if (next.guarantee === "auto") next.guarantee = [best ?? "self-orthogonal"]; }, ["guarantee"]))),
    h("div", { class: "scroll" }, stackedTable({ id: "ladder", class: "panel", "aria-label": "Ladder of guarantees" }, TITLES, rungs)),
    h("p", { id: "ladder-note", class: "hint" }, measured ? "Measuring …" : UNMEASURED),
    h("fieldset", { class: "choice" }, h("legend", {}, "Slack: how far it may be off"),
      radio("slack-choice", "measured on the outcomes", !byHand, () => page.change((next) => { next.slack = "audit"; }, ["guarantee"])),
      radio("slack-choice", "set by hand", byHand, () => { page.change((next) => { next.slack = 0; if (next.guarantee === "auto") next.guarantee = [best ?? "self-orthogonal"]; }, ["guarantee"]); })),
    byHand ? h("div", { class: "slack-row" }, h("span", { "aria-hidden": "true" }, "exact"), slider, h("span", { "aria-hidden": "true" }, "no guarantee"), box) : null,
    h("div", { class: "fields" }, field("Confidence", cell(state.confidence, null, (value) => page.change((next) => { next.confidence = value; })))));
  if (!measured) for (const input of body.querySelectorAll("input[name=rung-choice], input[name=slack-choice]")) input.disabled = true;
  if (page.ladder) showLadder(page, page.ladder);
  page.markLadder();
}

/** Shows the ladder; without one its table is empty and `why` stands under it. */
export function showLadder(page, answer, why = "Measuring …") {
  page.ladder = answer;
  best = answer?.best ?? null;
  const table = $("ladder");
  if (!table) return;
  const note = $("ladder-note");
  if (!answer) {
    for (const place of table.querySelectorAll("tbody .holds, tbody .slack, tbody .worth")) place.textContent = "–";
    for (const place of table.querySelectorAll(".picture")) place.replaceChildren();
    for (const row of table.querySelectorAll(".best")) row.classList.remove("best");
    note.textContent = why;
    return;
  }
  const values = answer.rungs.flatMap((rung) => [rung.guaranteed, rung.nominal]);
  const write = beside(values), slack = beside(answer.rungs.map((rung) => rung.slack)), low = Math.min(...values), high = Math.max(...values, low + 1e-9);
  for (const rung of answer.rungs) {
    const row = table.querySelector(`[data-rung="${rung.name}"]`);
    row.classList.toggle("best", rung.name === answer.best);
    row.querySelector(".holds").textContent = rung.holds ? "✓ yes" : "✗ no";
    row.querySelector(".slack").textContent = slack(rung.slack);
    row.querySelector(".worth").textContent = write(rung.guaranteed);
    row.querySelector(".picture").replaceChildren(rungMark(rung, low, high));
  }
  note.textContent = `“${RUNGS[answer.best]}” is worth most. All slacks hold at once with ${percent(answer.confidence)} confidence.${page.state.capacity ? " No capacity is counted here." : ""}`;
}
