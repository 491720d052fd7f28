// Step 5: files that reproduce the answer.
import { field, h, put } from "./elements.js";
import { post } from "./service.js";
import { missing, question } from "./state.js";

const $ = (id) => document.getElementById(id);
const FILES = [
  ["policy", "Policy (JSON)", "policy.json", "prudent.load reads it"],
  ["sql", "SQL", "policy.sql", "decide in a database"],
  ["python", "Python", "policy.py", "the same calls"],
  ["report", "Report (HTML)", "report.html", "one page to show around; needs outcomes"],
];
let dialect = "duckdb";

export function renderTakeaway(page) {
  const { state } = page, body = $("takeaway-body");
  if (!state.data || !state.problem) {
    return put(body, h("p", { class: "empty" }, "Files that reproduce the answer: policy, SQL, Python, report."));
  }
  const measured = state.columns?.outcome.length > 0;
  put(body, h("div", { class: "files" }, FILES.map(([name, title, file, hint]) => h("button", { type: "button", "data-file": name, disabled: name === "report" && !measured, onclick: (event) => take(page, name, file, event.currentTarget) }, h("strong", {}, title), h("span", {}, hint)))),
    field("SQL dialect", h("select", { onchange: (event) => { dialect = event.target.value; } },
      ["duckdb", "spark"].map((name) => h("option", { value: name, selected: name === dialect }, name)))));
}

async function take(page, name, file, button) {
  const box = $("takeaway-error"), what = missing(page.state);
  box.hidden = true;
  if (what) { box.textContent = what; box.hidden = false; return; }
  button.setAttribute("aria-busy", "true");
  try {
    const response = await post(`/api/files/${name}`, JSON.stringify({ question: question(page.state), name: page.state.data.name, dialect }));
    page.save(file, await response.blob(), response.headers.get("Content-Type"));
  } catch (refusal) { box.textContent = refusal.message; box.hidden = false; }
  button.removeAttribute("aria-busy");
}
