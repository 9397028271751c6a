// The searches and recordings that run, by the progress that the server reports of them.
import * as vscode from "vscode";
import type { WorkDoneProgressBegin, WorkDoneProgressEnd, WorkDoneProgressReport } from "vscode-languageclient/node";

export interface Job {
  /** The name that the server gave it. */
  id: string;
  title: string;
  /** What happens now, with the best speedup so far. */
  message: string;
  /** When it began, and when its last report came, as `Date.now()` has it. */
  began: number;
  heard: number;
}

export class Jobs implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly jobs = new Map<string, Job>();

  readonly onDidChange = this.changed.event;

  /** Takes a report. Returns whether it is of a job. */
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

  /** The server is gone, and its jobs with it. */
  clear(): void {
    this.jobs.clear();
    this.changed.fire();
  }

  dispose(): void {
    this.changed.dispose();
  }
}

/** What a status bar has room for. */
export function inShort(job: Job): string {
  const since = (time: number): number => Math.floor((Date.now() - time) / 1000);
  // Of the budget, where there is one: what goes before it does not count.
  const [, spent, budget] = /(\d+)\/(\d+) s/.exec(job.message) ?? [];
  const seconds = spent === undefined ? since(job.began) : `${Math.min(Number(spent) + since(job.heard), Number(budget))}/${budget}`;
  const best = /([\d.]+)×/.exec(job.message)?.[1];
  const speedup = best === undefined ? "" : ` · ${Number(best).toFixed(1)}×`;
  return `${job.title} ${seconds} s${speedup}`;
}
