// Maps of policies over two forecasts or three classes, as SVG: cells coloured by their most likely action.
import { axes, colour, frame, scale, shortened, ticks } from "./charts.js";
import { number, percent, s } from "./elements.js";

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

/** Positions on paper of forecasts on a plane, and back. */
function plane({ width, lower, upper, titles }) {
  const left = 62, right = width - 14, top = 26, bottom = Math.round(top + (right - left) * 0.72), height = bottom + 44;
  const x = scale(lower[0], upper[0], left, right), y = scale(lower[1], upper[1], bottom, top);
  const backX = scale(left, right, lower[0], upper[0]), backY = scale(bottom, top, lower[1], upper[1]);
  return {
    height, place: ([first, second]) => [x(first), y(second)],
    back: (px, py) => [clamp(backX(px), lower[0], upper[0]), clamp(backY(py), lower[1], upper[1])],
    frame: axes({ x, y, left, right, top, bottom, xs: ticks(lower[0], upper[0], width < 500 ? 3 : 6), ys: ticks(lower[1], upper[1], 5), xTitle: titles[0], yTitle: titles[1] }),
  };
}

/** The same for probabilities of three classes: each corner is certainty of one. */
function triangle({ width, titles }) {
  const side = Math.min(width - 40, 520), left = (width - side) / 2, top = 30, bottom = top + side * 0.866, height = bottom + 30;
  const corners = [[left, bottom], [left + side, bottom], [left + side / 2, top]];
  const area = (bottom - top) * side;
  const share = (px, py, [ax, ay], [bx, by]) => Math.abs((ax - px) * (by - py) - (bx - px) * (ay - py)) / area;
  const anchors = ["start", "end", "middle"], offsets = [20, 20, -10];
  return {
    height, place: (forecast) => [0, 1].map((axis) => forecast.reduce((sum, chance, j) => sum + chance * corners[j][axis], 0)),
    back: (px, py) => {
      // Outside the triangle areas add up to more than one; dividing moves the point onto it.
      const shares = [share(px, py, corners[1], corners[2]), share(px, py, corners[2], corners[0]), share(px, py, corners[0], corners[1])];
      const [first, second] = shares.map((value) => Number((value / shares.reduce((a, b) => a + b)).toFixed(6)));
      return [first, second, Number((1 - first - second).toFixed(6))].map((value) => Math.max(0, value));
    },
    frame: s("g", { "aria-hidden": "true" },
      s("path", { d: `M${corners.map((corner) => corner.join(" ")).join("L")}Z`, class: "outline" }),
      titles.map((title, j) => s("text", { x: corners[j][0], y: corners[j][1] + offsets[j], "text-anchor": anchors[j], class: "title" }, `certainly ${title}`.slice(0, 28)))),
  };
}

/** Corners of the cells of a map as shares of its edges, in the order in which the studio plays there. */
function corners(kind, steps) {
  const cells = [], range = (count) => Array.from({ length: count }, (_, k) => k);
  if (kind === "plane") {
    for (const i of range(steps)) for (const j of range(steps)) cells.push([[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]]);
  } else {
    for (const i of range(steps)) for (const j of range(steps - i)) cells.push([[i + 1, j], [i, j + 1], [i, j]]);
    for (const i of range(steps - 1)) for (const j of range(steps - 1 - i)) cells.push([[i, j + 1], [i + 1, j], [i + 1, j + 1]]);
    for (const cell of cells) for (const corner of cell) corner.push(steps - corner[0] - corner[1]);
  }
  return cells.map((cell) => cell.map((corner) => corner.map((step) => step / steps)));
}

/** Outlines and middles of all cells on paper; the same for every answer while the page keeps its width. */
let drawn = { key: "" };
function cellsOn(paper, { kind, steps }, lower, upper, width) {
  const key = JSON.stringify([kind, steps, lower, upper, width]);
  if (drawn.key === key) return drawn;
  const onPaper = (corner) => paper.place(kind === "plane" ? corner.map((share, j) => lower[j] + share * (upper[j] - lower[j])) : corner);
  const places = corners(kind, steps).map((cell) => cell.map(onPaper));
  drawn = {
    key, outlines: places.map((cell) => `M${cell.map((at) => at.map((value) => value.toFixed(2)).join(" ")).join("L")}Z`),
    middles: places.map((cell) => [0, 1].map((axis) => cell.reduce((sum, at) => sum + at[axis], 0) / cell.length)),
  };
  return drawn;
}

/** Colours where actions are played, names them in their regions, and puts circles where forecasts are. */
export function regionMap(width, answer, { lower, upper, titles }, onpoint) {
  const { regions, actions } = answer;
  const paper = (regions.kind === "plane" ? plane : triangle)({ width, lower, upper, titles });
  const { likeliest, hundredths } = regions, { outlines, middles } = cellsOn(paper, regions, lower, upper, width);
  // One path for all cells that look alike: thousands of elements would take longer to draw than to compute.
  const alike = new Map();
  outlines.forEach((outline, k) => {
    const look = 101 * likeliest[k] + hundredths[k];
    alike.set(look, (alike.get(look) ?? "") + outline);
  });
  const cells = Array.from(alike, ([look, d]) => s("path", {
    d, fill: colour(Math.floor(look / 101)), "fill-opacity": (0.3 + 0.007 * (look % 101)).toFixed(3), class: "cell" }));
  const most = Math.max(...regions.crowds.map((crowd) => crowd.share), 1e-12);
  const crowds = regions.crowds.map((crowd) => {
    const [cx, cy] = paper.place(crowd.at);
    return s("circle", { cx: cx.toFixed(2), cy: cy.toFixed(2), r: Math.max(1, 9 * Math.sqrt(crowd.share / most)).toFixed(2), class: "crowd" });
  });
  const names = actions.map((name, i) => {
    const own = middles.filter((_, k) => likeliest[k] === i);
    if (!own.length) return null;
    const middle = [0, 1].map((axis) => own.reduce((sum, at) => sum + at[axis], 0) / own.length);
    // A region need not contain its middle: take the cell of it that is nearest.
    const [x, y] = own.reduce((best, at) => (Math.hypot(at[0] - middle[0], at[1] - middle[1]) < Math.hypot(best[0] - middle[0], best[1] - middle[1]) ? at : best));
    const anchor = x < width * 0.2 ? "start" : x > width * 0.8 ? "end" : "middle";
    return s("text", { x, y: y + 5, "text-anchor": anchor, class: "region" }, shortened(name, 20));
  });
  const pointer = s("circle", { r: 7, class: "spot", visibility: "hidden" });
  const label = `Policy map over ${regions.kind === "plane" ? `the forecasts ${titles.join(" and ")}` : `the probabilities of ${titles.join(", ")}`}. `
    + actions.map((name, i) => `${name} is likeliest on ${percent(likeliest.filter((one) => one === i).length / likeliest.length)} of the map`).join(", ")
    + ". Circles show where forecasts are; the table below lists examples.";
  const svg = frame(width, paper.height, label, ...cells, paper.frame, ...crowds, ...names, pointer);
  const where = (event) => {
    const box = svg.getBoundingClientRect();
    return paper.back((event.clientX - box.left) / box.width * width, (event.clientY - box.top) / box.height * paper.height);
  };
  for (const kind of ["pointermove", "pointerdown"]) svg.addEventListener(kind, (event) => onpoint(where(event)));
  svg.point = (forecast) => {
    const [cx, cy] = paper.place(forecast);
    for (const [name, value] of Object.entries({ cx, cy, visibility: "visible" })) pointer.setAttribute(name, value);
  };
  return svg;
}

/** The same in words: what is played at evenly spread forecasts. */
export function exampleRows({ regions, actions }) {
  const { forecasts, shares } = regions.examples;
  const played = (row) => row.map((share, i) => (share < 0.0005 ? null : share > 0.9995 ? actions[i] : `${actions[i]} ${percent(share)}`)).filter(Boolean).join(", ");
  return forecasts.map((forecast, k) => [...forecast.map(number), played(shares[k])]);
}
