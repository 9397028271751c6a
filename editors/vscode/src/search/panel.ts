// A panel with one search: its content and its buttons.
import { promises as fs } from "node:fs";
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { Offers } from "../offers";
import type { Session } from "../session";
import { page } from "./page";
import type { Confirmation, Detail, FromPage, News, Search, ToPage } from "./types";

export const VIEW = "warpsmith.search";

/** The state of a panel that survives a reload of the window. */
export interface Remembered {
  uri: string;
  run: string;
}

/** The server's answer about a run. */
export interface Answer {
  report: Omit<Search, "job" | "uri" | "state" | "message" | "report" | "confirmations"> & {
    summary: string | null;
    change: string | null;
    diff: string | null;
  };
  confirmations: Confirmation[];
  page: string;
  label: string | null;
}

export interface Around {
  extension: vscode.Uri;
  session: Session;
  offers: Offers;
}

export class Panel {
  private isReady = false;

  constructor(
    readonly view: vscode.WebviewPanel,
    private search: Search,
    private readonly around: Around,
  ) {
    view.webview.options = { enableScripts: true, localResourceRoots: [] };
    view.iconPath = vscode.Uri.joinPath(around.extension, "media", "icon.png");
    view.title = `Search ${search.name}`;
    view.webview.onDidReceiveMessage((message: FromPage) => this.take(message));
    void this.write();
  }

  shows(search: Search): boolean {
    return search.job === this.search.job && search.job !== undefined;
  }

  /** Handles news of a search: the shown one, or the one that resumes its run. */
  hear(search: Search, news: News): void {
    const goesOn = news.begun !== undefined && search.run !== "" && search.run === this.search.run && search.uri === this.search.uri;
    if (!this.shows(search) && !goesOn) return;
    const isOther = search !== this.search;
    this.search = search;
    if (isOther || news.ended || news.started) this.sendAll();
    else this.send({ kind: "news", news });
    if (news.ended) void this.load();
  }

  /** Updates the page after the offer has changed. */
  offersChanged(): void {
    this.send({ kind: "offer", canApply: this.canApply() });
  }

  private async write(): Promise<void> {
    const read = (name: string): Promise<string> => fs.readFile(vscode.Uri.joinPath(this.around.extension, name).fsPath, "utf8");
    const [script, ...styles] = await Promise.all(["dist/search.js", "media/report.css", "media/search.css"].map(read));
    this.view.webview.html = page(this.search.name, script ?? "", styles.join("\n"), randomBytes(16).toString("base64url"));
  }

  private async take(message: FromPage): Promise<void> {
    switch (message.kind) {
      case "ready":
        this.isReady = true;
        this.sendAll();
        if (this.search.state !== "running" && !this.search.report) await this.load();
        break;
      case "candidate":
        await this.detail(message.id);
        break;
      case "stop":
        await this.around.session.execute("warpsmith.cancel", { job: this.search.job });
        break;
      case "resume":
        await this.resume();
        break;
      case "apply":
        if (this.search.job !== undefined) this.around.offers.take(this.search.job);
    }
  }

  private async detail(candidate: number): Promise<void> {
    const { uri, run } = this.search;
    try {
      const detail = await this.around.session.ask<Detail>("warpsmith/search", { uri, run, candidate });
      this.send({ kind: "detail", detail });
    } catch (error) {
      this.send({ kind: "no-detail", id: candidate, why: error instanceof Error ? error.message : String(error) });
    }
  }

  private async resume(): Promise<void> {
    const { uri, run, subject } = this.search;
    // The server requires an open document.
    await vscode.workspace.openTextDocument(vscode.Uri.parse(uri, true));
    const what = typeof subject === "string" ? {} : subject;
    await this.around.session.execute("warpsmith.optimize", { uri, run, ...what });
  }

  /** Requests the report of a search that has ended. */
  private async load(): Promise<void> {
    const { search } = this;
    if (search.run === "") return;
    try {
      const answer = await this.around.session.ask<Answer>("warpsmith/search", { uri: search.uri, run: search.run });
      enrich(search, answer);
      if (search === this.search) this.sendAll();
    } catch (error) {
      console.warn("warpsmith: no report of a search:", error);
    }
  }

  private canApply(): boolean {
    return this.search.job !== undefined && this.around.offers.has(this.search.job);
  }

  private sendAll(): void {
    this.view.title = `Search ${this.search.name}`;
    this.send({ kind: "search", search: this.search, canApply: this.canApply() });
  }

  private send(message: ToPage): void {
    if (this.isReady) void this.view.webview.postMessage(message);
  }
}

/** Replaces the content from news by that of the run's report. */
export function enrich(search: Search, { report, confirmations, page, label }: Answer): void {
  const { run, name, subject, budget, seconds, environment, date, candidates, summary, change, diff } = report;
  Object.assign(search, { run, name, subject, budget, seconds, environment, date, candidates, confirmations });
  search.report = { change, diff, page };
  if (summary !== null) {
    search.state = "over";
    search.message = label ?? summary;
  }
}
