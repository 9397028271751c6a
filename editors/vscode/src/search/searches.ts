// The searches of this window, according to the server's news.
import * as vscode from "vscode";
import { begin, fold, type News, type Search } from "./types";

/** The maximum number of searches; older ones are forgotten. */
const KEPT = 20;

export class Searches implements vscode.Disposable {
  private readonly told = new vscode.EventEmitter<{ search: Search; news: News }>();
  private readonly searches = new Map<string, Search>();

  readonly onDidHear = this.told.event;

  /** Handles news of a search. */
  take(news: News): void {
    const search = this.searches.get(news.job) ?? begin(news.job);
    this.searches.set(news.job, search);
    fold(search, news);
    for (const job of [...this.searches.keys()].slice(0, -KEPT)) this.searches.delete(job);
    this.told.fire({ search, news });
  }

  /** All searches, the latest first. */
  all(): Search[] {
    return [...this.searches.values()].reverse();
  }

  running(): Search[] {
    return this.all().filter(({ state }) => state === "running");
  }

  /** Marks running searches as stopped, after the server has ended. They are stored and can be resumed. */
  clear(): void {
    for (const { job } of this.running()) {
      if (job !== undefined) this.take({ job, ended: { how: "stopped", summary: "The server has ended.", offer: false } });
    }
    // Another server numbers its jobs from one again.
    for (const search of this.searches.values()) search.job = undefined;
    this.searches.clear();
  }

  dispose(): void {
    this.told.dispose();
  }
}
