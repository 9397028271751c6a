// The chart of the best speedup over time, drawn as in the report.
import type { Search } from "../src/search/types";
import { set, svg } from "./dom";

const [HEIGHT, MARGIN] = [220, 36];
/** As wide as the available space, so that the font size matches the rest of the page. */
const [NARROWEST, WIDEST] = [280, 860];

export function drawCurve(target: SVGElement, search: Search): void {
  const width = Math.min(Math.max(target.clientWidth, NARROWEST), WIDEST);
  const judged = search.candidates.flatMap(({ speedup, seconds }) => (speedup !== null && seconds !== null ? [{ speedup, seconds }] : []));
  judged.sort((one, other) => one.seconds - other.seconds);
  const most = judged.reduce((most, { speedup }) => Math.max(most, speedup), 1);
  const end = Math.max(search.seconds, search.state === "running" ? search.budget : 0, 1);
  const top = Math.max(most, 1.1);
  const x = (seconds: number): string => (MARGIN + ((width - 2 * MARGIN) * seconds) / end).toFixed(1);
  const y = (speedup: number): string => (HEIGHT - MARGIN - ((HEIGHT - 2 * MARGIN) * (Math.min(Math.max(speedup, 1), top) - 1)) / (top - 1)).toFixed(1);

  let [path, best] = [`M${x(0)},${y(1)}`, 1];
  for (const { seconds, speedup } of judged.filter(({ speedup }) => speedup > 1)) {
    if (speedup <= best) continue;
    best = speedup;
    path += ` H${x(seconds)} V${y(best)}`;
  }
  path += ` H${x(Math.min(search.seconds, end))}`;
  const dots = judged.map(({ seconds, speedup }) => svg("circle", { class: "right", cx: x(seconds), cy: y(speedup), r: 2 }));
  const text = (words: string, left: number, at: string | number): SVGElement => {
    const made = svg("text", { x: left, y: at });
    made.textContent = words;
    return made;
  };
  const seconds = `${end.toFixed(0)} s`;
  const words = [text("1×", 4, y(1)), text(`${top.toFixed(2)}×`, 4, Number(y(top)) + 4), text(seconds, width - 2 * MARGIN, HEIGHT - 8)];
  const about = most > 1 ? `${most.toFixed(2)}× after ${search.seconds.toFixed(0)} s` : `nothing faster after ${search.seconds.toFixed(0)} s`;
  set(target, { viewBox: `0 0 ${width} ${HEIGHT}`, "aria-label": `best speedup over time: ${about}` });
  target.replaceChildren(...dots, svg("path", { class: "best", d: path }), ...words);
}
