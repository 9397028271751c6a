// The details of one candidate: its verdict, measurements and change.
import type { Detail } from "../src/search/types";
import { diff, element, html, say } from "./dom";

function verdict(detail: Detail): string {
  const before = detail.remembered ? ", as an earlier search has seen" : "";
  switch (detail.fate) {
    case "right":
      return `Right, ${detail.speedup?.toFixed(2)}× by a few timings${detail.twin ? ", those of another one with the same machine code" : ""}.`;
    case "wrong":
      return `Wrong${before}.`;
    case "uncompiled":
      return `Does not compile${before}.`;
    case "open":
      return "Not judged yet.";
  }
}

function table(detail: Detail): HTMLElement {
  const row = (name: string, cells: string[]): HTMLElement => html("tr", "", ...cells.map((text) => html(name, text)));
  const ms = (time: number): string => `${time.toFixed(4)} ms`;
  const rows = detail.calls.map(({ call, before_ms, ratio }) => row("td", [call, ms(before_ms), ms(before_ms / ratio), `${ratio.toFixed(2)}×`]));
  return html("table", "", row("th", ["call", "as written", "this one", "faster"]), ...rows);
}

export function showDetail(detail: Detail): void {
  const body: Node[] = [html("p", verdict(detail))];
  if (detail.reason) body.push(html("pre", detail.reason));
  const { large, kind, seconds } = detail;
  const made = `${large ? "Built otherwise" : "A small step"} (${kind})`;
  body.push(html("p", seconds === null ? `${made}.` : `${made}, judged after ${seconds.toFixed(1)} s.`));
  if (detail.calls.length > 0) body.push(table(detail));
  const text = html("pre");
  text.id = "detail-diff";
  text.tabIndex = 0;
  text.setAttribute("aria-label", "difference to the file as it was");
  diff(text, detail.diff);
  open(detail.change, [...body, text]);
}

export function showNoDetail(why: string): void {
  open("Not known", [html("p", why)]);
}

function open(title: string, body: Node[]): void {
  const section = element("detail");
  say(element("detail-title"), title);
  element("detail-body").replaceChildren(...body);
  section.hidden = false;
  section.scrollIntoView({ block: "nearest" });
}
