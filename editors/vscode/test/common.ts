// Functions shared by the tests in the extension host.
import * as vscode from "vscode";
import type { Api } from "../src/extension";

/** Prints a line through the program outside of the extension host. */
export function say(...words: unknown[]): void {
  console.log("TEST " + words.join(" "));
}

/** Waits until a function returns a value. */
export async function until<T>(what: string, get: () => T | undefined | false | null | PromiseLike<T | undefined | false | null>, seconds = 60): Promise<T> {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const got = await get();
    if (got) return got;
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export function inFolder(name: string): vscode.Uri {
  const folder = vscode.workspace.workspaceFolders?.[0];
  if (!folder) throw new Error("no folder is open");
  return vscode.Uri.joinPath(folder.uri, name);
}

export async function show(uri: vscode.Uri): Promise<vscode.TextEditor> {
  return vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri));
}

/** The codes of this extension's findings in a document, by line. */
export function codes(uri: vscode.Uri): string[] {
  const own = vscode.languages.getDiagnostics(uri).filter((item) => item.source === "warpsmith");
  own.sort((a, b) => a.range.start.compareTo(b.range.start));
  return own.map(({ code }) => String(typeof code === "object" ? code.value : code));
}

/** The range of a text in a document. */
export function place(document: vscode.TextDocument, words: string): vscode.Range {
  const at = document.getText().indexOf(words);
  if (at < 0) throw new Error(`${words} is not in ${document.fileName}`);
  return new vscode.Range(document.positionAt(at), document.positionAt(at + words.length));
}

export async function api(): Promise<Api> {
  const extension = vscode.extensions.getExtension<Api>("warpsmith.warpsmith");
  if (!extension) throw new Error("the extension is not there");
  return extension.activate();
}

/** The code actions that are offered at a text. */
export async function actionsAt(document: vscode.TextDocument, words: string): Promise<vscode.CodeAction[]> {
  return vscode.commands.executeCommand("vscode.executeCodeActionProvider", document.uri, place(document, words));
}
