// Numbers, tables and the plot.

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export const ratio = (a, b) => `${Number.isNaN(a / b) ? "" : `${(a / b).toFixed(2)} ×`}`;

const print = (cell) => (typeof cell !== "number" ? cell : Number.isNaN(cell) ? "" : Number.isInteger(cell) ? `${cell}` : cell.toPrecision(3));

/** A Markdown table; numbers have three digits, what was not measured is empty. */
export function table(head, rows) {
  const line = (cells) => `| ${cells.map(print).join(" | ")} |\n`;
  return line(head) + line(head.map((_, at) => (typeof rows[0]?.[at] === "number" ? "--:" : "---"))) + rows.map(line).join("");
}

const WIDTH = 640;
const HEIGHT = 360;
const LEFT = 70;
const RIGHT = 230;
const TOP = 40;
const BOTTOM = 50;
const COLOURS = ["#1a5fb4", "#62a0ea", "#a51d2d", "#f66151"];

/** Cost per task over map width as SVG, both axes logarithmic. `lines` are points by label. */
export function plot(lines) {
  const points = [...lines.values()].flat();
  const decades = (values) => [Math.floor(Math.log10(Math.min(...values))), Math.ceil(Math.log10(Math.max(...values)))];
  const [x0, x1] = decades(points.map(([x]) => x));
  const [y0, y1] = decades(points.map(([, y]) => y));
  const x = (value) => LEFT + ((Math.log10(value) - x0) / (x1 - x0)) * (WIDTH - LEFT - RIGHT);
  const y = (value) => HEIGHT - BOTTOM - ((Math.log10(value) - y0) / (y1 - y0)) * (HEIGHT - TOP - BOTTOM);
  const text = (at, words, options = "") => `<text x="${at[0].toFixed(1)}" y="${at[1].toFixed(1)}" ${options}>${words}</text>`;
  const shapes = [];
  for (let power = x0; power <= x1; power += 1) {
    const at = x(10 ** power);
    shapes.push(`<path d="M${at.toFixed(1)} ${TOP}V${HEIGHT - BOTTOM}" stroke="#ddd"/>`);
    shapes.push(text([at, HEIGHT - BOTTOM + 18], (10 ** power).toLocaleString("en"), 'text-anchor="middle"'));
  }
  for (let power = y0; power <= y1; power += 1) {
    const at = y(10 ** power);
    shapes.push(`<path d="M${LEFT} ${at.toFixed(1)}H${WIDTH - RIGHT}" stroke="#ddd"/>`);
    shapes.push(text([LEFT - 8, at + 4], `${10 ** power} ms`, 'text-anchor="end"'));
  }
  [...lines].forEach(([label, line], number) => {
    const colour = COLOURS[number % COLOURS.length];
    const path = line.map(([px, py]) => `${x(px).toFixed(1)} ${y(py).toFixed(1)}`).join("L");
    shapes.push(`<path d="M${path}" fill="none" stroke="${colour}" stroke-width="2"/>`);
    shapes.push(...line.map(([px, py]) => `<circle cx="${x(px).toFixed(1)}" cy="${y(py).toFixed(1)}" r="3" fill="${colour}"/>`));
    shapes.push(text([WIDTH - RIGHT + 20, TOP + 20 * number + 12], label, `fill="${colour}"`));
  });
  shapes.push(text([LEFT, 20], "Milliseconds per task, by elements of the map", 'font-weight="bold"'));
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">\n` +
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>\n${shapes.join("\n")}\n</svg>\n`
  );
}
