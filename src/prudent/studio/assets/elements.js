// Elements made in one expression; text is always text, never markup.
const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** Four digits, as the library's reports write numbers, and all digits before the point up to a billion. */
export function number(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e4 && size < 1e9) return Math.round(value).toLocaleString("en").replaceAll("-", "−");
  if (size >= 1e9 || (size < 1e-3 && size > 0)) return value.toPrecision(3).replace(/\.?0+(e|$)/, "$1").replaceAll("-", "−");
  return String(Number(value.toPrecision(4))).replaceAll("-", "−");
}

/** Writes numbers that stand side by side: what is nothing but rounding beside the largest of them is zero. */
export function beside(...values) {
  const least = 1e-9 * Math.max(...values.flat().map((value) => Math.abs(value ?? 0)));
  return (value) => number(Math.abs(value ?? NaN) < least ? 0 : value);
}

const CONTROLS = "input, select, button, summary, [tabindex]";
/** What a person would call a control, and what kind of thing it is. */
const nameOf = (control) => [control.tagName, control.type, control.name, control.ariaLabel ?? control.labels?.[0]?.textContent ?? control.textContent].join(" ");
const kindOf = (control) => [control.parentElement.tagName, control.tagName, control.type, control.className].join(" ");

/** Opens what was open before, by the name of its summary. */
function keepOpen(element, shown) {
  const open = new Set(Array.from(element.querySelectorAll("details[open] > summary"), (summary) => summary.textContent));
  for (const child of open.size ? shown : []) {
    for (const details of child.matches?.("details") ? [child] : child.querySelectorAll?.("details") ?? []) {
      details.open ||= open.has(details.querySelector("summary").textContent);
    }
  }
}

/** Shows children in place of what is there; absent ones are left out. The focus stays on the control of the same name. */
export function put(element, ...children) {
  const shown = children.flat().filter((child) => child !== null && child !== undefined);
  keepOpen(element, shown);
  const focus = element.contains(document.activeElement) ? document.activeElement : null;
  if (!focus || focus === element) return element.replaceChildren(...shown);
  const name = nameOf(focus), kind = kindOf(focus), place = Array.from(element.querySelectorAll(CONTROLS)).indexOf(focus);
  element.replaceChildren(...shown);
  const controls = Array.from(element.querySelectorAll(CONTROLS));
  // A row was removed: the control that took its place is of the same kind, or the nearest one before it is.
  const alike = (control) => control && !control.disabled && kindOf(control) === kind;
  const next = controls.find((control) => nameOf(control) === name && !control.disabled)
    ?? (alike(controls[place]) ? controls[place] : controls.slice(0, place).reverse().find(alike)) ?? controls[place];
  next?.focus({ preventScroll: true });
}

let fields = 0;
/** A control under its label. */
export function field(label, control) {
  fields += 1;
  control.id ||= `field-${fields}`;
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control);
}

/** A table of words and numbers in a region that scrolls; cells may be elements of their own. */
export function tableOf(label, titles, rows) {
  const cell = (value) => (value instanceof Node ? value : h("td", {}, value));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, h("table", {},
    h("thead", {}, h("tr", {}, titles.map((title) => h("th", { scope: "col" }, title)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell))))));
}

/** Explicit roles: some browsers drop the meaning of table rows that are stacked on narrow pages. */
export function stackedTable(attributes, titles, rows) {
  return h("table", { role: "table", ...attributes },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, titles.map((title) => h("th", { scope: "col", role: "columnheader" }, title)))),
    h("tbody", { role: "rowgroup" }, rows));
}

export const counted = (count, name) => `${count.toLocaleString("en")} ${name}${count === 1 ? "" : "s"}`;
export const percent = (share) => `${Math.abs(share) < 1e-9 ? 0 : Number((100 * share).toPrecision(3))}%`;
