// A faster kernel is shown as a diff before it is taken.
import * as vscode from "vscode";
import type { ApplyWorkspaceEditParams, ApplyWorkspaceEditResult, LanguageClient } from "vscode-languageclient/node";
import { ApplyWorkspaceEditRequest, TextDocumentEdit } from "vscode-languageclient/node";

const SCHEME = "warpsmith-offer";

/** The texts that are offered, for the right side of a diff. */
export class Offers implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly answers = new Map<string, (take: boolean) => void>();
  /** Of each job whose offer is open, its text's address. */
  private readonly open = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly registration: vscode.Disposable;
  private count = 0;

  /** Fires when an offer is shown, and when it was answered. */
  readonly onAnswer = this.changed.event;

  constructor() {
    // Above the diff: a message can be overlooked, or closed.
    const answer = (take: boolean) => (uri: vscode.Uri | undefined) => this.answers.get(uri?.toString() ?? "")?.(take);
    this.registration = vscode.Disposable.from(
      this.changed,
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.commands.registerCommand("warpsmith.applyOffer", answer(true)),
      vscode.commands.registerCommand("warpsmith.discardOffer", answer(false)),
    );
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }

  /** Whether what a job has found waits for an answer. */
  has(job: string): boolean {
    return this.answers.has(this.open.get(job) ?? "");
  }

  /** Takes what a job has found. */
  take(job: string): void {
    this.answers.get(this.open.get(job) ?? "")?.(true);
  }

  dispose(): void {
    this.registration.dispose();
  }

  /** Has the client bring edits of the server here. Before its start: what is said then takes the place of its own way. */
  serve(client: LanguageClient): vscode.Disposable {
    return client.onRequest(ApplyWorkspaceEditRequest.type, (params) => this.apply(client, params));
  }

  private async apply(client: LanguageClient, params: ApplyWorkspaceEditParams): Promise<ApplyWorkspaceEditResult> {
    const [change, ...more] = params.edit.documentChanges ?? [];
    if (!TextDocumentEdit.is(change) || more.length > 0) {
      const edit = await client.protocol2CodeConverter.asWorkspaceEdit(params.edit);
      return { applied: await vscode.workspace.applyEdit(edit) };
    }
    const document = await vscode.workspace.openTextDocument(client.protocol2CodeConverter.asUri(change.textDocument.uri));
    const stale = { applied: false, failureReason: "the file has changed meanwhile" };
    const isStale = (): boolean => (change.textDocument.version ?? document.version) !== document.version;
    if (isStale()) return stale;
    const edits = await client.protocol2CodeConverter.asTextEdits(change.edits);
    const annotations = Object.values(params.edit.changeAnnotations ?? {});
    if (annotations.some((annotation) => annotation.needsConfirmation)) {
      const about = annotations.map((annotation) => annotation.description).find((text) => text) ?? "";
      // The annotation has the name of the job that asks.
      const [job = ""] = Object.keys(params.edit.changeAnnotations ?? {});
      if (!(await this.isTaken(job, document, edits, params.label ?? "A faster kernel", about))) return { applied: false };
      if (isStale()) return stale;
    }
    const edit = new vscode.WorkspaceEdit();
    edit.set(document.uri, edits);
    return { applied: await vscode.workspace.applyEdit(edit) };
  }

  /** Shows what would change, and asks. */
  private async isTaken(job: string, document: vscode.TextDocument, edits: vscode.TextEdit[], label: string, about: string): Promise<boolean> {
    this.count += 1;
    const offered = vscode.Uri.from({ scheme: SCHEME, path: document.uri.path, query: String(this.count) });
    const key = offered.toString();
    this.texts.set(key, changed(document, edits));
    try {
      // Where the file is, and not over a panel that shows the search.
      const viewColumn = vscode.window.visibleTextEditors.find((editor) => editor.document === document)?.viewColumn;
      const options = { preview: false, viewColumn: viewColumn ?? vscode.ViewColumn.One };
      await vscode.commands.executeCommand("vscode.diff", document.uri, offered, label, options);
      return await new Promise<boolean>((resolve) => {
        this.answers.set(key, resolve);
        this.open.set(job, key);
        this.changed.fire();
        const apply = "Apply";
        const discard = "Discard";
        const text = [label, about].filter(Boolean).join(". ");
        // Closing the message is no answer while the diff is open.
        const answered = (chosen: string | undefined): void => {
          if (chosen !== undefined || tabsOf(offered).length === 0) resolve(chosen === apply);
        };
        void vscode.window.showInformationMessage(text, apply, discard).then(answered);
        const closed = vscode.window.tabGroups.onDidChangeTabs(() => {
          if (tabsOf(offered).length > 0) return;
          closed.dispose();
          resolve(false);
        });
      });
    } finally {
      const tabs = tabsOf(offered);
      if (tabs.length > 0) await vscode.window.tabGroups.close(tabs);
      this.answers.delete(key);
      if (this.open.get(job) === key) this.open.delete(job);
      this.changed.fire();
      this.texts.delete(key);
    }
  }
}

/** The document's text with edits made. */
function changed(document: vscode.TextDocument, edits: readonly vscode.TextEdit[]): string {
  const text = document.getText();
  const spans = edits.map((edit) => ({
    start: document.offsetAt(edit.range.start),
    end: document.offsetAt(edit.range.end),
    text: edit.newText,
  }));
  // From the end, so that what is yet to be changed stays where it is.
  spans.sort((a, b) => b.start - a.start);
  return spans.reduce((text, span) => text.slice(0, span.start) + span.text + text.slice(span.end), text);
}

/** Where an offered text is shown. */
function tabsOf(offered: vscode.Uri): vscode.Tab[] {
  const isOf = (tab: vscode.Tab): boolean =>
    tab.input instanceof vscode.TabInputTextDiff && tab.input.modified.toString() === offered.toString();
  return vscode.window.tabGroups.all.flatMap((group) => group.tabs).filter(isOf);
}
