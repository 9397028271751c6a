// The running searches and recordings, according to the server's progress reports.
import * as vscode from "vscode";
import type { WorkDoneProgressBegin, WorkDoneProgressEnd, WorkDoneProgressReport } from "vscode-languageclient/node";

export interface Job {
  /** The progress token of the server. */
  id: string;
  title: string;
  /** The current activity, with the best speedup so far. */
  message: string;
  /** The times of its start and of its last report, as `Date.now()`. */
  began: number;
  heard: number;
}

export class Jobs implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly jobs = new Map<string, Job>();

  readonly onDidChange = this.changed.event;

  /** Handles a progress report. Returns whether it belongs to a job. */
  take(token: string | number, value: WorkDoneProgressBegin | WorkDoneProgressReport | WorkDoneProgressEnd): boolean {
    if (typeof token !== "string" || !token.startsWith("warpsmith/")) return false;
    const known = this.jobs.get(token);
    if (value.kind === "end") {
      this.jobs.delete(token);
    } else {
      const title = value.kind === "begin" ? value.title : (known?.title ?? "");
      const { message = known?.message ?? "" } = value;
      this.jobs.set(token, { id: token, title, message, began: known?.began ?? Date.now(), heard: Date.now() });
    }
    this.changed.fire();
    return true;
  }

  all(): Job[] {
    return [...this.jobs.values()];
  }

  /** Removes all jobs, after the server has ended. */
  clear(): void {
    this.jobs.clear();
    this.changed.fire();
  }

  dispose(): void {
    this.changed.dispose();
  }
}

/** A short text for the status bar. */
export function inShort(job: Job): string {
  const since = (time: number): number => Math.floor((Date.now() - time) / 1000);
  // The seconds of the budget, if there is one, without the preparation before it.
  const [, spent, budget] = /(\d+)\/(\d+) s/.exec(job.message) ?? [];
  const seconds = spent === undefined ? since(job.began) : `${Math.min(Number(spent) + since(job.heard), Number(budget))}/${budget}`;
  const best = /([\d.]+)×/.exec(job.message)?.[1];
  const speedup = best === undefined ? "" : ` · ${Number(best).toFixed(1)}×`;
  return `${job.title} ${seconds} s${speedup}`;
}
