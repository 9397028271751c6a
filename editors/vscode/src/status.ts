// The item in the status bar.
import * as vscode from "vscode";
import { State } from "vscode-languageclient/node";
import { inShort, type Jobs } from "./jobs";

/** The parameters of `warpsmith/status`. */
export interface ServerStatus {
  compiler: {
    state: "idle" | "starting" | "compiling" | "ready" | "unfit";
    python: string | null;
    triton: string | null;
    message: string | null;
  };
  /** The device for measurements, or the reason why there is none. Both are null during the search for devices. */
  device: { name: string | null; message: string | null };
}

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("warpsmith.status", vscode.StatusBarAlignment.Right, 90);
  private readonly subscriptions: vscode.Disposable[];
  private clock: NodeJS.Timeout | undefined;
  private server: State | string = State.Starting;
  private compiler: ServerStatus["compiler"] | undefined;
  private device: ServerStatus["device"] | undefined;

  constructor(private readonly jobs: Jobs) {
    this.item.name = "Warpsmith";
    this.item.command = "warpsmith.showStatus";
    const show = (): void => this.show();
    this.subscriptions = [this.item, jobs.onDidChange(show), vscode.window.onDidChangeVisibleTextEditors(show)];
    this.show();
  }

  /** Sets the state of the server, or the reason why there is none. */
  setServer(server: State | string): void {
    this.server = server;
    if (server !== State.Running) this.compiler = this.device = undefined;
    this.show();
  }

  setStatus(status: ServerStatus): void {
    this.compiler = status.compiler;
    this.device = status.device;
    this.show();
  }

  /** The complete status, one fact per line. */
  lines(): string[] {
    if (typeof this.server === "string") return [this.server];
    if (this.server !== State.Running) return ["The server is starting or has stopped."];
    const lines = this.jobs.all().map((job) => `${job.title}: ${job.message}`);
    const { state, python, triton, message } = this.compiler ?? { state: "idle" };
    lines.push(message ? `Compiler: ${message}` : `Compiler: ${state}`);
    if (python) lines.push(`Python: ${python}${triton ? `, Triton ${triton}` : ""}`);
    const device = this.device?.name ?? this.device?.message;
    lines.push(`GPU: ${device ?? "still looking"}`);
    if (!vscode.workspace.isTrusted) lines.push("The workspace is not trusted: findings only, nothing is run.");
    return lines;
  }

  /** The text of the item. */
  get text(): string {
    return this.item.text;
  }

  dispose(): void {
    clearInterval(this.clock);
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  private show(): void {
    const jobs = this.jobs.all();
    this.item.text = this.words();
    this.item.tooltip = this.lines().join("\n");
    this.item.accessibilityInformation = { label: `Warpsmith: ${this.item.text.replace(/\$\([^)]*\) ?/g, "")}` };
    const isBroken = typeof this.server === "string" || this.server === State.Stopped;
    this.item.backgroundColor = isBroken ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    const isPython = vscode.window.visibleTextEditors.some((editor) => editor.document.languageId === "python");
    if (jobs.length > 0 || isBroken || isPython) this.item.show();
    else this.item.hide();
    // The shown seconds also advance between reports.
    if (jobs.length === 0) {
      clearInterval(this.clock);
      this.clock = undefined;
    } else {
      this.clock ??= setInterval(() => this.show(), 1000);
    }
  }

  private words(): string {
    if (typeof this.server === "string") return "$(warning) Warpsmith: no server";
    if (this.server === State.Starting) return "$(loading~spin) Warpsmith";
    if (this.server === State.Stopped) return "$(warning) Warpsmith: stopped";
    const [job, ...more] = this.jobs.all();
    if (job) return `$(sync~spin) ${inShort(job)}${more.length > 0 ? ` +${more.length}` : ""}`;
    switch (this.compiler?.state) {
      case "starting":
      case "compiling":
        return "$(loading~spin) Warpsmith: compiling";
      case "unfit":
        return "$(circle-slash) Warpsmith: no compiler";
      case "ready":
        return "$(check) Warpsmith";
      default:
        return vscode.workspace.isTrusted ? "$(flame) Warpsmith" : "$(shield) Warpsmith: findings only";
    }
  }
}
