// Shows a faster kernel as a diff before it is applied.
import * as vscode from "vscode";
import type { ApplyWorkspaceEditParams, ApplyWorkspaceEditResult, LanguageClient } from "vscode-languageclient/node";
import { ApplyWorkspaceEditRequest, TextDocumentEdit } from "vscode-languageclient/node";

const SCHEME = "warpsmith-offer";

/** The offered texts, for the right side of a diff. */
export class Offers implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly answers = new Map<string, (take: boolean) => void>();
  /** The URI of the offered text of each job with an open offer. */
  private readonly open = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly registration: vscode.Disposable;
  private count = 0;

  /** Fires when an offer is shown and when it is answered. */
  readonly onAnswer = this.changed.event;

  constructor() {
    // There are buttons above the diff as well, since a message can be overlooked or closed.
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

  /** Whether the offer of a job waits for an answer. */
  has(job: string): boolean {
    return this.answers.has(this.open.get(job) ?? "");
  }

  /** Applies the offer of a job. */
  take(job: string): void {
    this.answers.get(this.open.get(job) ?? "")?.(true);
  }

  dispose(): void {
    this.registration.dispose();
  }

  /** Registers the handler for edits of the server. Must be called before the client starts, since it replaces the client's own handler. */
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
      // The annotation contains the name of the job.
      const [job = ""] = Object.keys(params.edit.changeAnnotations ?? {});
      if (!(await this.isTaken(job, document, edits, params.label ?? "A faster kernel", about))) return { applied: false };
      if (isStale()) return stale;
    }
    const edit = new vscode.WorkspaceEdit();
    edit.set(document.uri, edits);
    return { applied: await vscode.workspace.applyEdit(edit) };
  }

  /** Shows the change and asks whether to apply it. */
  private async isTaken(job: string, document: vscode.TextDocument, edits: vscode.TextEdit[], label: string, about: string): Promise<boolean> {
    this.count += 1;
    const offered = vscode.Uri.from({ scheme: SCHEME, path: document.uri.path, query: String(this.count) });
    const key = offered.toString();
    this.texts.set(key, changed(document, edits));
    try {
      // The diff opens in the column of the file, so that it does not hide the search panel.
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
        // Closing the message does not answer the question while the diff is open.
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

/** The document's text after edits. */
function changed(document: vscode.TextDocument, edits: readonly vscode.TextEdit[]): string {
  const text = document.getText();
  const spans = edits.map((edit) => ({
    start: document.offsetAt(edit.range.start),
    end: document.offsetAt(edit.range.end),
    text: edit.newText,
  }));
  // From the end, so that the offsets of the remaining edits stay valid.
  spans.sort((a, b) => b.start - a.start);
  return spans.reduce((text, span) => text.slice(0, span.start) + span.text + text.slice(span.end), text);
}

/** The tabs that show an offered text. */
function tabsOf(offered: vscode.Uri): vscode.Tab[] {
  const isOf = (tab: vscode.Tab): boolean =>
    tab.input instanceof vscode.TabInputTextDiff && tab.input.modified.toString() === offered.toString();
  return vscode.window.tabGroups.all.flatMap((group) => group.tabs).filter(isOf);
}
