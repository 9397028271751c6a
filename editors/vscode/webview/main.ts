// The page of a search: draws the host's messages and returns the user's actions.
import { best, fold, type FromPage, type Search, type ToPage } from "../src/search/types";
import { drawCurve } from "./curve";
import { showDetail, showNoDetail } from "./detail";
import { diff, element, html, say } from "./dom";
import { Tree } from "./tree";

declare function acquireVsCodeApi(): { postMessage(message: FromPage): void; setState(state: unknown): void };

/** The minimum interval between announced speedups for screen readers, in milliseconds. */
const QUIET = 20_000;

const host = acquireVsCodeApi();
const tree = new Tree(element<SVGElement>("tree"), (id) => host.postMessage({ kind: "candidate", id }));
let search: Search | undefined;
let canApply = false;
let shown: number | undefined;
let written = "";
let spoken = { at: 0, best: 1, state: "" };
/** The time of the last update of the search's seconds, as `Date.now()`. */
let heard = Date.now();

function buttons({ state, run }: Search): void {
  const can = { stop: state === "running", resume: run !== "" && (state === "stopped" || state === "failed"), apply: canApply };
  for (const [id, enabled] of Object.entries(can)) element<HTMLButtonElement>(id).disabled = !enabled;
}

function numbers(search: Search): string {
  const count = (fate: string): number => search.candidates.filter((tried) => tried.fate === fate).length;
  const most = best(search);
  const judged = `${count("right")} right, ${count("wrong")} wrong, ${count("uncompiled")} not compiled, ${count("open")} open`;
  const time = `${Math.floor(search.seconds)} of ${search.budget.toFixed(0)} s`;
  return [time, most === undefined ? "nothing right yet" : `best ${most.toFixed(2)}×`, judged].join(" · ");
}

function report({ report, confirmations }: Search): void {
  element("confirmed").hidden = confirmations.length === 0;
  const lines = confirmations.map(({ change, label, refused }) => html("li", `${change}: ${label ?? refused ?? "no offer"}`));
  element("confirmations").replaceChildren(...lines);
  element("change").hidden = !report?.diff;
  say(element("change-words"), report?.change ?? "");
  diff(element("change-diff"), report?.diff ?? "");
  const page = report?.page ?? "";
  if (page === written) return;
  written = page;
  // The server has escaped the page, and the content policy blocks scripts and styles in it.
  element("report").innerHTML = page;
}

/** Announces the start, better speedups and the end of a search to screen readers. */
function speak(search: Search): void {
  const most = best(search) ?? 1;
  const isBetter = most >= spoken.best * 1.02 && Date.now() - spoken.at > QUIET;
  if (search.state === spoken.state && !isBetter) return;
  spoken = { at: Date.now(), best: most, state: search.state };
  const words = search.state === "running" ? (most > 1 ? `best so far ${most.toFixed(2)} times as fast` : `optimizing ${search.name}`) : search.message;
  say(element("spoken"), words);
}

function draw(): void {
  if (!search) return;
  say(element("name"), search.name);
  say(element("headline"), search.message || "The search begins.");
  say(element("numbers"), numbers(search));
  say(element("environment"), [search.environment, search.date].filter(Boolean).join("; "));
  buttons(search);
  drawCurve(element<SVGElement>("curve"), search);
  tree.draw(search.candidates);
}

window.addEventListener("message", ({ data }: MessageEvent<ToPage>) => {
  switch (data.kind) {
    case "search":
      ({ search, canApply } = data);
      host.setState({ uri: search.uri, run: search.run });
      report(search);
      break;
    case "news":
      if (!search) return;
      fold(search, data.news);
      if (data.news.begun) host.setState({ uri: search.uri, run: search.run });
      if (data.news.confirmations) report(search);
      // Requests the result of the shown candidate.
      if (data.news.candidates?.some(({ id }) => id === shown)) host.postMessage({ kind: "candidate", id: shown ?? 0 });
      break;
    case "offer":
      canApply = data.canApply;
      break;
    case "detail":
      shown = data.detail.fate === "open" ? data.detail.id : undefined;
      showDetail(data.detail);
      return;
    case "no-detail":
      showNoDetail(data.why);
      return;
  }
  heard = Date.now();
  draw();
  if (search) speak(search);
});

// The shown seconds also advance between messages.
setInterval(() => {
  if (search?.state !== "running" || search.run === "") return;
  search.seconds = Math.min(search.seconds + (Date.now() - heard) / 1000, Math.max(search.budget, search.seconds));
  heard = Date.now();
  say(element("numbers"), numbers(search));
  drawCurve(element<SVGElement>("curve"), search);
}, 1000);

for (const kind of ["stop", "resume", "apply"] as const) {
  element<HTMLButtonElement>(kind).addEventListener("click", () => host.postMessage({ kind }));
}
host.postMessage({ kind: "ready" });
