// The searches of this window, by what the server tells of them.
import * as vscode from "vscode";
import { begin, fold, type News, type Search } from "./types";

/** So many are kept, the last ones. */
const KEPT = 20;

export class Searches implements vscode.Disposable {
  private readonly told = new vscode.EventEmitter<{ search: Search; news: News }>();
  private readonly searches = new Map<string, Search>();

  readonly onDidHear = this.told.event;

  /** Takes what is new of one. */
  take(news: News): void {
    const search = this.searches.get(news.job) ?? begin(news.job);
    this.searches.set(news.job, search);
    fold(search, news);
    for (const job of [...this.searches.keys()].slice(0, -KEPT)) this.searches.delete(job);
    this.told.fire({ search, news });
  }

  /** The latest first. */
  all(): Search[] {
    return [...this.searches.values()].reverse();
  }

  running(): Search[] {
    return this.all().filter(({ state }) => state === "running");
  }

  /** The server is gone, and its searches with it. They are written down, and can go on. */
  clear(): void {
    for (const { job } of this.running()) {
      if (job !== undefined) this.take({ job, ended: { how: "stopped", summary: "The server has ended.", offer: false } });
    }
    // Another server counts its jobs from one again.
    for (const search of this.searches.values()) search.job = undefined;
    this.searches.clear();
  }

  dispose(): void {
    this.told.dispose();
  }
}
