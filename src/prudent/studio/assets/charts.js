// Charts as SVG: numbers in, shapes out, nothing computed but positions.
import { beside, h, number, percent, s } from "./elements.js";

// Okabe and Ito's colours, told apart by people of all kinds of colour vision; marks differ in shape or dash, too.
const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A800", "#7F7F7F"];
const DASHES = ["", "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "1 2", "6 2 1 2"];
const NARROW = 500;
// Widths that panels had when a chart was last drawn in them: asking for one would delay the answer by a layout.
const widths = new WeakMap();
const canvas = (space) => Math.min(640, Math.max(280, 20 * Math.floor(space / 20)));

/** A chart as wide as its place, so that letters keep their size; drawn anew when the place gets another width. */
export function fitted(panel, make) {
  let width = widths.get(panel) ?? canvas(panel.clientWidth), spot = null;
  widths.set(panel, width);
  let chart = make(width);
  const place = h("div", {}, chart);
  place.point = (forecast) => { spot = forecast; chart.point(forecast); };
  const fit = (space) => {
    if (!space || canvas(space) === width) return;
    width = canvas(space);
    widths.set(panel, width);
    chart = make(width);
    place.replaceChildren(chart);
    if (spot) chart.point(spot);
  };
  // In the next frame: a chart that changes its height while heights are looked at would be looked at without end.
  new ResizeObserver(([entry]) => requestAnimationFrame(() => fit(entry.contentRect.width))).observe(place);
  return place;
}

export const colour = (position) => COLOURS[position % COLOURS.length];
const dash = (position) => DASHES[position % DASHES.length];

export function ticks(low, high, count = 5) {
  if (!(high > low)) return [low];
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1) found.push(Number((k * step).toPrecision(12)));
  return found;
}

export const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
export const scale = (low, high, from, to) => (value) => from + ((to - from) * (value - low)) / (high - low || 1);

export function frame(width, height, label, ...children) {
  return s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "chart" }, ...children);
}

const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 8 });
/** Numbers at an axis, where room is scarce. */
const mark = (value) => (Math.abs(value) >= 1e4 && Math.abs(value) < 1e12 ? short.format(value).replace("-", "−") : number(value));

export function axes({ x, y, left, right, top, bottom, xs, ys, xTitle, yTitle, format = mark }) {
  return s("g", { class: "axes", "aria-hidden": "true" },
    ys.map((value) => [
      s("line", { x1: left, x2: right, y1: y(value), y2: y(value), class: "grid" }),
      s("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, format(value))]).flat(),
    xs.map((value) => [
      s("line", { x1: x(value), x2: x(value), y1: bottom, y2: bottom + 4, class: "tick" }),
      s("text", { x: x(value), y: bottom + 17, "text-anchor": "middle" }, mark(value))]).flat(),
    s("line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "axis" }),
    xTitle ? s("text", { x: (left + right) / 2, y: bottom + 34, "text-anchor": "middle", class: "title" }, xTitle) : null,
    yTitle ? s("text", { x: left, y: top - 8, class: "title" }, yTitle) : null);
}

function line(points, attributes) {
  return s("path", { d: points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(2)} ${y.toFixed(2)}`).join(""), fill: "none", ...attributes });
}

export function legend(names, kind = "box") {
  return h("ul", { class: "legend" }, names.map((name, i) => h("li", {}, swatch(i, kind), ` ${name}`)));
}

function swatch(i, kind) {
  const shape = kind === "line"
    ? s("line", { x1: 1, x2: 25, y1: 7, y2: 7, stroke: colour(i), "stroke-width": 3, "stroke-dasharray": dash(i) })
    : s("rect", { x: 6, y: 1, width: 13, height: 12, rx: 2, fill: colour(i) });
  return s("svg", { viewBox: "0 0 26 14", width: 26, height: 14, "aria-hidden": "true" }, shape);
}

/** Utility of every action against the outcome (or along classes); null as long as numbers are missing. */
export function utilityLines(panel, problem) {
  const payoffs = problem.kind === "payoffs";
  const stops = payoffs ? problem.classes.map((_, j) => j) : [0, 1];
  const value = (i, t) => payoffs ? problem.payoffs[i][t]
    : problem.rewards[i].reduce((sum, reward, j) => sum + reward * (problem.lower[j] + t * (problem.upper[j] - problem.lower[j])), -problem.costs[i]);
  const lines = problem.actions.map((_, i) => stops.map((t) => value(i, t)));
  const all = lines.flat(), spread = Math.max(...all) - Math.min(...all);
  const one = !payoffs && problem.lower.length === 1;
  if (!all.length || ![...all, 3 * spread].every(Number.isFinite) || (one && !(problem.upper[0] > problem.lower[0]))) return null;
  return h("figure", {}, fitted(panel, (width) => drawLines(width, problem, lines, one)), legend(problem.actions, "line"));
}

function drawLines(width, problem, lines, one) {
  const payoffs = problem.kind === "payoffs", all = lines.flat();
  const low = Math.min(...all), high = Math.max(...all), pad = (high - low) * 0.06 || 1;
  const height = 230, left = 56, right = width - 12, top = 24, bottom = height - 42;
  const [from, to] = one ? [problem.lower[0], problem.upper[0]] : [0, lines[0].length - 1];
  const x = scale(from, to, left, right), y = scale(low - pad, high + pad, bottom, top);
  const at = (k) => one ? (k ? problem.upper[0] : problem.lower[0]) : k;
  const best = problem.actions[lines.map((l) => l.reduce((a, b) => a + b)).reduce((b, v, i, a) => (v > a[b] ? i : b), 0)];
  const parts = lines.map((values, i) => [
    line(values.map((v, k) => [x(at(k)), y(v)]), { stroke: colour(i), "stroke-width": 3, "stroke-dasharray": dash(i) }),
    payoffs ? values.map((v, k) => s("circle", { cx: x(k), cy: y(v), r: 4, fill: colour(i) })) : []]).flat(2);
  const axis = axes({ x, y, left, right, top, bottom, xs: one ? ticks(from, to) : [], ys: ticks(low, high), yTitle: "utility",
    xTitle: one ? "outcome" : payoffs ? null : width < NARROW ? "all outcomes, lowest to highest" : "all outcomes, from their lower to their upper bounds" });
  const room = Math.floor((right - left) / problem.classes?.length / 7.5);
  const names = payoffs ? problem.classes.map((name, j) =>
    s("text", { x: x(j), y: bottom + 20, "text-anchor": j === 0 ? "start" : j === problem.classes.length - 1 ? "end" : "middle" }, shortened(name, Math.min(18, room)))) : [];
  return frame(width, height, `Utility of each action. On average over the range ${best} is highest.`, axis, ...parts, ...names);
}

/** Which action at which forecast, and under it how often each forecast occurs. */
export function policyMap(width, answer, onpoint) {
  const { forecast, shares } = answer.curve, { edges, counts } = answer.histogram;
  const left = 50, right = width - 12, top = 24, bottom = 210, floor = 290, height = 330;
  const low = forecast[0], high = forecast.at(-1);
  const x = scale(low, high, left, right), y = scale(0, 1, bottom, top), most = Math.max(...counts, 1e-12), bar = scale(0, most, floor, bottom + 14);
  let below = forecast.map(() => 0);
  const areas = shares.map((share, i) => {
    const above = share.map((value, k) => below[k] + value);
    const there = forecast.map((v, k) => `${x(v).toFixed(2)} ${y(above[k]).toFixed(2)}`);
    const back = forecast.map((v, k) => `${x(v).toFixed(2)} ${y(below[k]).toFixed(2)}`).reverse();
    below = above;
    return s("path", { d: `M${there.join("L")}L${back.join("L")}Z`, fill: colour(i), class: "area" });
  });
  const bars = counts.map((count, k) => s("rect", {
    x: x(edges[k]) + 0.5, width: Math.max(0.5, x(edges[k + 1]) - x(edges[k]) - 1), y: bar(count), height: floor - bar(count), class: "bar" }));
  const pointer = s("line", { x1: left, x2: left, y1: top, y2: floor, class: "pointer", visibility: "hidden" });
  const edge = beside(low, high), text = answer.bands.map((band) => `from ${edge(band.first)} to ${edge(band.last)}: ${band.played}`).join("; ");
  const svg = frame(width, height, `Policy map. ${text}. Under it a histogram of the forecasts.`,
    axes({ x, y, left, right, top, bottom: floor, xs: ticks(low, high, width < NARROW ? 3 : 6), ys: [0, 0.5, 1], xTitle: "forecast", yTitle: width < NARROW ? "probability of each action" : "probability of each action; under it, how often forecasts occur", format: percent }),
    ...areas, ...bars, s("line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "axis" }), pointer);
  const where = (event) => {
    const box = svg.getBoundingClientRect();
    const share = ((event.clientX - box.left) / box.width * width - left) / (right - left);
    return low + Math.min(1, Math.max(0, share)) * (high - low);
  };
  svg.addEventListener("pointermove", (event) => onpoint(where(event)));
  svg.addEventListener("pointerdown", (event) => onpoint(where(event)));
  svg.point = ([value]) => {
    pointer.setAttribute("visibility", "visible");
    pointer.setAttribute("x1", x(value)); pointer.setAttribute("x2", x(value));
  };
  return svg;
}

/** The mean outcome that the policy is prepared for, at each forecast. */
export function beliefLine(width, curve) {
  const { forecast, belief } = curve, low = forecast[0], high = forecast.at(-1);
  const height = 240, left = 50, right = width - 12, top = 24, bottom = height - 42;
  const x = scale(low, high, left, right), y = scale(low, high, bottom, top);
  const named = curve.acts_on === "worst case" ? "worst-case belief" : "what the rule acts on";
  return h("figure", {},
    frame(width, height, `${named}, against the forecast; the dashed line is the forecast itself.`,
      axes({ x, y, left, right, top, bottom, xs: ticks(low, high, width < NARROW ? 3 : 6), ys: ticks(low, high, 4), xTitle: "forecast", yTitle: "mean outcome" }),
      line([[x(low), y(low)], [x(high), y(high)]], { stroke: colour(1), "stroke-width": 2.5, "stroke-dasharray": dash(1) }),
      line(forecast.map((v, k) => [x(v), y(belief[k])]), { stroke: colour(0), "stroke-width": 3 })),
    legend([named, "the forecast itself"], "line"));
}

/** Bars in groups: one group per name, one bar per series. */
export function groupedBars(width, names, series, label, format = number) {
  const size = 15, gap = 12, left = width < NARROW ? 96 : 130;
  const rows = names.length * (series.length * size + gap), height = rows + 14;
  const values = series.flatMap((one) => one.values).filter((v) => v !== null);
  const low = Math.min(0, ...values), high = Math.max(0, ...values), room = 12 + 8 * Math.max(...values.map((value) => format(value).length));
  const x = scale(low, high || 1, left + (low < 0 ? room : 0), width - room);
  const parts = names.map((name, i) => {
    const y0 = 8 + i * (series.length * size + gap);
    return [s("text", { x: 0, y: y0 + (series.length * size) / 2 + 4, class: "name" }, shortened(name, left / 8)),
      ...series.map((one, j) => {
        const value = one.values[i];
        if (value === null) return null;
        const a = x(Math.min(0, value)), b = x(Math.max(0, value)), y = y0 + j * size;
        return s("g", {}, s("rect", { x: a, y, width: Math.max(1, b - a), height: size - 3, fill: colour(j) }),
          s("text", { x: value < 0 ? a - 4 : b + 4, y: y + size - 5, "text-anchor": value < 0 ? "end" : "start" }, format(value)));
      })];
  }).flat();
  return h("figure", {}, frame(width, height, label, s("line", { x1: x(0), x2: x(0), y1: 2, y2: rows, class: "axis" }), ...parts), legend(series.map((one) => one.name)));
}

/** A small dot on a scale that all rungs share. */
export function rungMark(rung, low, high) {
  const x = scale(low, high, 8, 132);
  return s("svg", { viewBox: "0 0 140 18", class: "mark", "aria-hidden": "true" },
    s("line", { x1: x(rung.guaranteed), x2: x(rung.nominal), y1: 9, y2: 9, class: "axis" }),
    s("circle", { cx: x(rung.guaranteed), cy: 9, r: 6, fill: colour(0) }),
    s("path", { d: `M${x(rung.nominal)} 3l6 6l-6 6l-6 -6Z`, fill: colour(1) }));
}
