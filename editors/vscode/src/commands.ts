// The commands of the palette.
import * as vscode from "vscode";
import { DocumentSymbolRequest, type CodeAction, type DocumentSymbol } from "vscode-languageclient/node";
import { argument, cursor, take, whyNot } from "./actions";
import type { Job, Jobs } from "./jobs";
import type { Searches } from "./search/searches";
import type { Session } from "./session";
import type { StatusItem } from "./status";

const REWRITE = "refactor.rewrite";
const STAGES = [
  { label: "TTIR", description: "Triton's own form, as the front end makes it", stage: "ttir" },
  { label: "TTGIR", description: "with layouts of threads", stage: "ttgir" },
  { label: "LLIR", description: "LLVM's form", stage: "llir" },
  { label: "PTX", description: "NVIDIA's portable assembly", stage: "ptx" },
  { label: "SASS", description: "what an NVIDIA GPU runs", stage: "sass" },
  { label: "AMDGCN", description: "what an AMD GPU runs", stage: "amdgcn" },
];

function isSearch(action: CodeAction, wanted: "plain" | "ask" | "resume" | "measure"): boolean {
  if (action.command?.command !== "warpsmith.optimize") return false;
  const { ask, run, measure } = argument(action);
  const kind = ask ? "ask" : measure ? "measure" : run ? "resume" : "plain";
  return kind === wanted;
}

async function inspect(session: Session): Promise<void> {
  const at = cursor(session);
  if (!at) return;
  const picked = await vscode.window.showQuickPick(STAGES, { title: "What the compiler makes of this kernel" });
  if (picked) await session.execute("warpsmith.inspect", { uri: at.uri, position: at.position, stage: picked.stage });
}

async function resources(session: Session): Promise<void> {
  const at = cursor(session);
  if (!at) return;
  const symbols = (await at.client.sendRequest(DocumentSymbolRequest.type, { textDocument: { uri: at.uri } })) ?? [];
  const { line } = at.position;
  const isHere = (symbol: DocumentSymbol): boolean => symbol.range.start.line <= line && line <= symbol.range.end.line;
  const kernel = symbols.find((symbol): symbol is DocumentSymbol => "range" in symbol && isHere(symbol));
  if (kernel) await session.execute("warpsmith.resources", { uri: at.uri, kernel: kernel.name });
  else void vscode.window.showWarningMessage("Put the cursor into a Triton kernel first.");
}

async function record(session: Session, again: boolean): Promise<void> {
  const at = cursor(session);
  if (at) await session.execute("warpsmith.record", { uri: at.uri, again });
}

async function stop(session: Session, jobs: Jobs): Promise<void> {
  const all = jobs.all();
  const items = all.map((job) => ({ label: job.title, description: job.message, job }));
  const only = items.length === 1 ? items[0] : undefined;
  const picked = only ?? (items.length > 0 ? await vscode.window.showQuickPick(items, { title: "Stop" }) : undefined);
  if (picked) await session.execute("warpsmith.cancel", { job: picked.job.id });
  else if (all.length === 0) void vscode.window.showInformationMessage("Warpsmith: nothing runs that could be stopped.");
}

/** The objects that the commands use besides the server. */
export interface Shown {
  status: StatusItem;
  jobs: Jobs;
  searches: Searches;
  log: vscode.OutputChannel;
}

/** Shows the status, with the possible actions. */
async function showStatus(session: Session, { status, jobs, searches, log }: Shown): Promise<void> {
  const server = session.server;
  const reason = await whyNot(session);
  const lines = [...status.lines(), ...(reason === undefined ? [] : [`Optimizing this kernel: ${reason}`])];
  const told = lines.map((label) => ({ label, run: () => undefined }));
  const stops = jobs.all().map((job: Job) => ({
    label: `$(debug-stop) Stop: ${job.title}`,
    run: () => session.execute("warpsmith.cancel", { job: job.id }),
  }));
  const separator = { label: "", kind: vscode.QuickPickItemKind.Separator, run: () => undefined };
  const items = [
    ...told,
    ...(server ? [{ label: `Server: ${server.path}`, description: `from ${server.from}`, run: () => undefined }] : []),
    separator,
    ...(searches.all().length > 0 ? [{ label: "$(graph) Show the search", run: () => vscode.commands.executeCommand("warpsmith.showSearch") }] : []),
    ...stops,
    { label: "$(pulse) What works on this machine", run: () => doctor(session) },
    { label: "$(output) Show the log", run: () => log.show() },
    { label: "$(refresh) Restart the server", run: () => session.restart() },
  ];
  const picked = await vscode.window.showQuickPick(items, { title: "Warpsmith" });
  await picked?.run();
}

/** Runs `warpsmith doctor` in a terminal, since its tests take a while and the user may want to watch them. */
function doctor(session: Session): void {
  const server = session.server;
  if (!server) return;
  const cwd = vscode.workspace.workspaceFolders?.[0]?.uri;
  const place = cwd ? { cwd } : {};
  const terminal = vscode.window.createTerminal({ name: "warpsmith doctor", ...place });
  terminal.sendText(`"${server.path}" doctor`);
  terminal.show();
}

export function registerCommands(session: Session, shown: Shown): vscode.Disposable[] {
  const { jobs, log } = shown;
  const search = (wanted: "plain" | "ask" | "resume" | "measure", none: string) => (): Promise<void> =>
    take(session, REWRITE, (action) => isSearch(action, wanted), none);
  const isReport = (action: CodeAction): boolean => action.command?.command === "warpsmith.report";
  const nothing = "there is nothing to optimize here: put the cursor into a kernel, or a function that launches some";
  const commands: Record<string, () => unknown> = {
    optimizeKernel: search("plain", nothing),
    optimizeKernelWithSettings: search("ask", nothing),
    resumeSearch: search("resume", "no search of this kernel was stopped"),
    measureAgain: search("measure", "no search of this kernel has ended"),
    stopJob: () => stop(session, jobs),
    showReport: () => take(session, REWRITE, isReport, "no search of this kernel has ended"),
    recordWorkload: () => record(session, false),
    recordWorkloadAgain: () => record(session, true),
    inspectKernel: () => inspect(session),
    showResources: () => resources(session),
    showStatus: () => showStatus(session, shown),
    doctor: () => doctor(session),
    restart: () => session.restart(),
    showLog: () => log.show(),
  };
  return Object.entries(commands).map(([name, run]) => vscode.commands.registerCommand(`warpsmith.${name}`, run));
}
