// Functions for building a page.

const SVG = "http://www.w3.org/2000/svg";

/** Returns an element of the page that must exist. */
export function element<T extends Element = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page lacks #${id}`);
  return found as unknown as T;
}

export function svg(name: string, attributes: Record<string, string | number> = {}): SVGElement {
  const made = document.createElementNS(SVG, name);
  set(made, attributes);
  return made;
}

export function set(target: Element, attributes: Record<string, string | number>): void {
  for (const [name, value] of Object.entries(attributes)) {
    const text = String(value);
    if (target.getAttribute(name) !== text) target.setAttribute(name, text);
  }
}

/** Sets the text of an element if it has changed. */
export function say(target: Element, text: string): void {
  if (target.textContent !== text) target.textContent = text;
}

export function html(name: string, text = "", ...children: Node[]): HTMLElement {
  const made = document.createElement(name);
  made.textContent = text;
  made.append(...children);
  return made;
}

/** Shows a diff with coloured lines, as in the report. */
export function diff(target: Element, text: string): void {
  const lines = text.replace(/\n$/, "").split("\n");
  target.replaceChildren(
    ...lines.map((line) => {
      const made = html("span", `${line}\n`);
      made.className = line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : "";
      return made;
    }),
  );
}
