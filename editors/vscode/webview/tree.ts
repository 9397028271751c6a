// The tree of candidates, drawn as in the report, with keyboard navigation.
import type { Tried } from "../src/search/types";
import { set, svg } from "./dom";

const [ROW, COLUMN, MARGIN, REACH] = [18, 56, 24, 8];

/** A candidate, or one of the two starting points of all candidates. */
interface Item {
  id: number;
  parent: number | undefined;
  depth: number;
  tried: Tried | undefined;
  element: SVGElement;
}

const STARTS = new Map([
  [0, "anew"],
  [1, "as written"],
]);

export function words(tried: Tried): string {
  const fate = { open: "being judged", wrong: "wrong", uncompiled: "does not compile", right: "right" }[tried.fate];
  return `${tried.speedup === null ? fate : `${tried.speedup.toFixed(2)}×`}: ${tried.change}`;
}

export class Tree {
  private readonly elements = new Map<number, SVGElement>();
  private readonly ways = new Map<number, SVGElement>();
  private readonly lines = svg("g", { role: "presentation" });
  /** The items from top to bottom. */
  private items: Item[] = [];
  private at = 1;
  private selected: number | undefined;

  /** `show` is called when the user selects a candidate. */
  constructor(
    private readonly target: SVGElement,
    private readonly show: (id: number) => void,
  ) {
    target.append(this.lines);
    target.addEventListener("keydown", (event) => this.press(event));
    target.addEventListener("click", (event) => {
      const id = (event.target as Element).closest("[data-id]")?.getAttribute("data-id");
      if (id) this.choose(Number(id));
    });
  }

  draw(candidates: readonly Tried[]): void {
    const below = new Map<number, Tried[]>();
    for (const tried of candidates) below.set(tried.parent, [...(below.get(tried.parent) ?? []), tried]);
    this.items = [];
    let [y, deepest] = [MARGIN, 0];
    const branch = (id: number, parent: Item | undefined, from: [number, number], depth: number): void => {
      (below.get(id) ?? []).forEach((tried, place, siblings) => {
        if (place > 0) y += ROW;
        const to: [number, number] = [MARGIN + COLUMN * depth, y];
        this.way(tried, from, to);
        const item = this.item(tried.id, parent?.id, depth, tried, to, [place + 1, siblings.length]);
        deepest = Math.max(deepest, depth);
        branch(tried.id, item, to, depth + 1);
      });
    };
    for (const id of STARTS.keys()) {
      const from: [number, number] = [MARGIN, y];
      branch(id, this.item(id, undefined, 0, undefined, from, [id + 1, STARTS.size]), from, 1);
      y += 2 * ROW;
    }
    const [width, height] = [Math.max(2 * MARGIN + COLUMN * deepest, 200), y];
    set(this.target, { viewBox: `0 0 ${width} ${height}`, width, height });
    this.order();
  }

  private item(id: number, parent: number | undefined, depth: number, tried: Tried | undefined, [x, y]: [number, number], [place, of]: [number, number]): Item {
    const element = this.elements.get(id) ?? this.make(id);
    const name = tried ? words(tried) : (STARTS.get(id) ?? "");
    const at = { "aria-level": depth + 1, "aria-posinset": place, "aria-setsize": of };
    set(element, { ...at, "aria-label": name, "aria-selected": String(id === this.selected), transform: `translate(${x} ${y})` });
    const [hit, dot, title] = [...element.children];
    const radius = tried ? Math.min(Math.max(2 + 2 * (tried.speedup ?? 0.75), 3), REACH) : 4;
    if (hit) set(hit, { r: REACH + 1 });
    if (dot) set(dot, { class: tried?.fate ?? "start", r: radius });
    if (title && title.textContent !== name) title.textContent = name;
    const item = { id, parent, depth, tried, element };
    this.items.push(item);
    return item;
  }

  private make(id: number): SVGElement {
    const made = svg("g", { role: "treeitem", "data-id": id, tabindex: -1 });
    made.append(svg("circle", { class: "hit" }), svg("circle"), svg("title"));
    this.elements.set(id, made);
    return made;
  }

  private way(tried: Tried, [x, y]: [number, number], [toX, toY]: [number, number]): void {
    const known = this.ways.get(tried.id);
    const way = known ?? svg("path");
    set(way, { class: `way ${tried.large ? "large" : "small"}`, d: `M${x},${y} H${toX - COLUMN / 2} V${toY} H${toX}` });
    if (known) return;
    this.ways.set(tried.id, way);
    this.lines.append(way);
  }

  /** Puts the elements into reading order; one of them can be reached by Tab. */
  private order(): void {
    const known = new Set(this.items.map(({ id }) => id));
    for (const [id, element] of this.elements) {
      if (known.has(id)) continue;
      for (const gone of [element, this.ways.get(id)]) gone?.remove();
      this.elements.delete(id);
      this.ways.delete(id);
    }
    if (!known.has(this.at)) this.at = 1;
    let before: Element = this.lines;
    for (const { id, element } of this.items) {
      // An element that is moved loses the focus, so only misplaced ones are moved.
      if (before.nextElementSibling !== element) before.after(element);
      before = element;
      set(element, { tabindex: id === this.at ? 0 : -1 });
    }
  }

  private press(event: KeyboardEvent): void {
    const place = this.items.findIndex(({ id }) => id === this.at);
    const item = this.items[place];
    if (!item) return;
    const to: Record<string, () => Item | undefined> = {
      ArrowDown: () => this.items[place + 1],
      ArrowUp: () => this.items[place - 1],
      ArrowLeft: () => this.items.find(({ id }) => id === item.parent),
      ArrowRight: () => this.items.find(({ parent }) => parent === item.id),
      Home: () => this.items[0],
      End: () => this.items.at(-1),
    };
    if (event.key === "Enter" || event.key === " ") this.choose(item.id);
    else if (to[event.key]) this.focus(to[event.key]?.());
    else return;
    event.preventDefault();
  }

  private focus(item: Item | undefined): void {
    if (!item) return;
    this.at = item.id;
    this.order();
    item.element.focus();
    item.element.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  private choose(id: number): void {
    const item = this.items.find((item) => item.id === id);
    if (!item) return;
    this.focus(item);
    if (!item.tried) return;
    this.selected = id;
    for (const { id, element } of this.items) set(element, { "aria-selected": String(id === this.selected) });
    this.show(id);
  }
}
