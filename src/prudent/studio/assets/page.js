// The page: state in, steps rendered, questions asked, answers shown.
import { renderData, showDataError } from "./data_step.js";
import { renderDecision } from "./decision_step.js";
import { renderGuarantee, showLadder, UNMEASURED } from "./guarantee_step.js";
import { clearAnswer, explainPoint, forgetExplanation, renderExplain, showPolicy, showStress, showVerdict } from "./answer_step.js";
import { renderTakeaway } from "./takeaway_step.js";
import { counted } from "./elements.js";
import { Channel, get, post, upload } from "./service.js";
import { checked, decode, emptyState, encode, missing, question, stopMeasuring } from "./state.js";

const $ = (id) => document.getElementById(id);
// Long enough for two keys that fall together, and not to be felt.
const WAIT = 5, SLOW = 300, SETTLED = 350;

const page = {
  state: emptyState(), summary: null, ladder: null,
  /** Changes the state; with `render` also the inputs, else what is visible is right already. */
  change(edit, render = []) {
    edit(page.state);
    changed = performance.now();
    for (const step of render) STEPS[step](page);
    later();
  },
  /** The ladder was drawn anew: it is as old as before. */
  markLadder: () => channels.ladder.mark(),
  notice(text) {
    $("notice").textContent = text;
    $("notice").hidden = !text;
  },
};
const STEPS = { data: renderData, decision: renderDecision, guarantee: renderGuarantee, takeaway: renderTakeaway };

/** Under "auto" the policy needs the ladder, so the ladder is asked for after it and comes from the cache. */
let ladder = null;
const waiting = (...names) => names.some((name) => channels[name].running);
function done() {
  if (page.state.guarantee !== "auto" || !waiting("policy")) channels.ladder.ask(ladder, changed);
  explain();
}
/** The reasons at one forecast come last, so that they do not delay the answer. */
function explain() {
  if (!waiting("policy", "verdict", "stress", "ladder")) explainPoint(page);
}

const channels = {
  policy: new Channel("/api/policy", () => [$("policy")], {
    show: (answer, waited) => { said(answer, waited); showPolicy(page, answer); }, fail: failed, done }),
  verdict: new Channel("/api/verdict", () => [$("verdict")], { show: showVerdict, fail: failed, done }),
  stress: new Channel("/api/stress", () => [$("stress")], { show: showStress, fail: failed, done }),
  ladder: new Channel("/api/ladder", () => [$("ladder"), $("ladder-note")].filter(Boolean), {
    show: (answer) => showLadder(page, answer),
    fail: (refusal) => { showLadder(page, null, "There is no ladder for these inputs."); failed(refusal); }, filled: () => page.ladder !== null, done: explain }),
};

let asking = 0, settling = 0, changed = 0;
function later() {
  page.notice("");
  mark();
  clearTimeout(asking);
  asking = setTimeout(ask, WAIT);
  clearTimeout(settling);
  settling = setTimeout(remember, SETTLED);
}

/** What is on screen belongs to older inputs from this moment on. */
function mark() {
  ladder = null;
  for (const channel of Object.values(channels)) { channel.wanted = null; channel.mark(); }
  forgetExplanation();
}

function ask() {
  const what = missing(page.state);
  for (const box of document.querySelectorAll(".error")) box.hidden = true;
  if (what) { say(what); return; }
  const { state } = page, measured = state.columns.outcome.length > 0;
  const body = (parts) => JSON.stringify(question(state, parts));
  if (!measured) {
    $("verdict").replaceChildren();
    showLadder(page, null, UNMEASURED);
    for (const channel of [channels.verdict, channels.ladder]) channel.forget();
  }
  // All at once, what is looked at first before the rest: the studio answers them in this order.
  channels.policy.ask(body(), changed);
  if (channels.policy.current) say(fitted, "timing");
  else compute();
  channels.verdict.ask(measured ? body({ verdict: true }) : null, changed);
  channels.stress.ask(body(), changed);
  ladder = measured ? body({ ladder: true }) : null;
  done();
}

/** The line over the answer. */
let computing = 0, fitted = "";
function say(text, kind = "empty") {
  clearTimeout(computing);
  computing = 0;
  const status = $("answer-state");
  status.hidden = !text;
  status.className = kind;
  status.textContent = text;
}

/** Says after a while that something is computed, and until it is: most answers come sooner. */
function compute() {
  if (computing) return;
  say("");
  computing = setTimeout(() => { say("Computing …"); computing = -1; }, SLOW);
}

function said(answer, waited) {
  fitted = `Computed on ${counted(answer.rows, "row")}; on screen ${Math.round(waited)} ms after the change.`;
  say(fitted, "timing");
}

const STEP_OF = [[/^problem|^rewards/, "decision-error"], [/^guarantee|^slack|^confidence/, "guarantee-error"], [/^capacity/, "capacity-error"]];
function failed(refusal) {
  if (refusal.status === 404) return lost();
  say("There is no answer for these inputs.");
  const id = STEP_OF.find(([pattern]) => pattern.test(refusal.where))?.[1];
  if (!id) return showDataError(refusal, page);
  $(id).textContent = refusal.message;
  $(id).hidden = false;
}

/** The server was restarted, or other data took their place; several answers may tell, and one is enough. */
async function lost() {
  if (taking) return; // other data are on their way
  const { data } = page.state;
  if (data?.example) return takeExample(data.example, false);
  page.summary = null;
  renderData(page);
  say("Choose the data first.");
  showDataError(new Error(`The studio does not hold ${data?.name ?? "these data"} any more. Choose the file again; everything else is kept.`));
}

function remember() {
  if (encode(page.state) !== location.hash) history.pushState(null, "", encode(page.state));
}

/** Data that are taken, and steps back and forward: only the last choice counts, whichever comes first. */
let choice = 0, taking = false;
function choose(taken) {
  taking = taken;
  $("drop").removeAttribute("aria-busy");
  page.notice("");
  return (choice += 1);
}

async function restore() {
  const ticket = choose(false);
  clearTimeout(settling);
  clearTimeout(asking);
  try { page.state = decode(location.hash); } catch (error) {
    page.state = emptyState();
    page.notice(error.message.startsWith("This is") ? error.message : "The link is not complete; it was left out.");
  }
  clearAnswer();
  say("");
  page.ladder = null;
  for (const channel of Object.values(channels)) channel.forget();
  page.summary = null;
  const { data } = page.state;
  if (data) {
    let summary = null;
    try { summary = await get(`/api/data/${encodeURIComponent(data.id)}`); } catch (refusal) {
      if (ticket !== choice) return;
      if (refusal.status === 404) { renderAll(); await lost(); return; }
      showDataError(refusal);
    }
    if (ticket !== choice) return;
    page.summary = summary;
  }
  renderAll();
  mark();
  ask();
}

function renderAll() {
  changed = performance.now();
  for (const step of Object.values(STEPS)) step(page);
}

/** Takes data: keeps the description of the decision where it still fits. */
function adopt(summary, example, fresh) {
  const before = page.state.data;
  page.summary = summary;
  const names = new Set(summary.columns.map((column) => column.name));
  const { columns } = page.state;
  const fits = columns && [...columns.forecast, ...columns.outcome, ...(columns.context ?? []), columns.weight, columns.key, columns.period].every((name) => !name || names.has(name));
  page.state.data = { id: summary.id, name: summary.name, ...(example ? { example } : {}) };
  if (fresh || !fits) {
    Object.assign(page.state, emptyState(), { data: page.state.data, columns: summary.guess.columns, problem: summary.guess.problem });
    if (page.state.columns && !page.state.columns.outcome.length) stopMeasuring(page.state);
  }
  renderAll();
  later();
  if (before && !fresh && before.id !== summary.id) page.notice("This file differs from the one that the link was made with; the answer is for this file.");
}

async function takeFile(file) {
  if (!file) return;
  const fresh = page.summary !== null || page.state.data === null, ticket = choose(true);
  $("data-error").hidden = true;
  $("drop").setAttribute("aria-busy", "true");
  page.notice(`Reading ${file.name} …`);
  const coming = upload(file);
  $("file").value = "";
  await take(ticket, coming, null, fresh);
}

async function takeExample(name, fresh = true) {
  await take(choose(true), post(`/api/examples/${encodeURIComponent(name)}`, "").then((response) => response.json()), name, fresh);
}

/** Waits for data, and takes them unless something else was chosen meanwhile. */
async function take(ticket, coming, example, fresh) {
  let summary = null, refusal = null;
  try { summary = await coming; } catch (error) { refusal = error; }
  if (ticket !== choice) return;
  choose(false);
  if (refusal) showDataError(refusal); else adopt(summary, example, fresh);
}

function save(name, text, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
page.save = save;

function wire() {
  $("file").addEventListener("change", (event) => takeFile(event.target.files[0]));
  for (const button of document.querySelectorAll("[data-example]")) button.addEventListener("click", () => takeExample(button.dataset.example));
  for (const name of ["dragover", "drop"]) document.addEventListener(name, (event) => event.preventDefault());
  document.addEventListener("dragover", () => $("drop").classList.add("over"));
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) $("drop").classList.remove("over"); });
  document.addEventListener("drop", (event) => { $("drop").classList.remove("over"); takeFile(event.dataTransfer.files[0]); });
  $("save-state").addEventListener("click", () => save("prudent-studio.json", JSON.stringify(page.state, null, 1) + "\n", "application/json"));
  $("open-state").addEventListener("click", () => $("state-file").click());
  $("state-file").addEventListener("change", async (event) => {
    try {
      history.pushState(null, "", encode(checked(JSON.parse(await event.target.files[0].text()))));
      await restore();
    } catch (error) { page.notice(error instanceof SyntaxError ? "This is not a saved state: it is no JSON." : error.message); }
    event.target.value = "";
  });
  $("copy-link").addEventListener("click", async () => {
    remember();
    try { await navigator.clipboard.writeText(location.href); page.notice("The link is copied. It holds the inputs; the data stay here."); } catch {
      page.notice("The browser does not allow copying; take the address of this page.");
    }
  });
  window.addEventListener("popstate", restore);
  renderExplain(page);
}

wire();
restore();
