// What the server has the editor open: what the compiler makes of a kernel, beside it; reports, in a panel.
import { promises as fs } from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";
import type { ShowDocumentParams, ShowDocumentResult } from "vscode-languageclient/node";

/** The report is a page without scripts, and nothing in it may be loaded from elsewhere. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

async function showBeside(uri: vscode.Uri): Promise<void> {
  // The text may be another one than when it was opened last.
  const document = await vscode.workspace.openTextDocument(uri);
  const open = vscode.window.visibleTextEditors.find((editor) => editor.document === document);
  const viewColumn = open?.viewColumn ?? vscode.ViewColumn.Beside;
  await vscode.window.showTextDocument(document, { viewColumn, preserveFocus: true, preview: true });
}

async function showReport(uri: vscode.Uri): Promise<void> {
  const page = await fs.readFile(uri.fsPath, "utf8");
  const title = `Report ${path.basename(uri.fsPath, ".html")}`;
  const panel = vscode.window.createWebviewPanel("warpsmith.report", title, vscode.ViewColumn.Beside, {
    enableScripts: false,
    localResourceRoots: [],
  });
  const policy = `<meta http-equiv="Content-Security-Policy" content="${POLICY}">`;
  panel.webview.html = page.replace(/<head>/i, (head) => head + policy);
}

export async function showDocument(params: ShowDocumentParams): Promise<ShowDocumentResult> {
  const uri = vscode.Uri.parse(params.uri, true);
  try {
    if (params.external !== true) await showBeside(uri);
    else if (uri.scheme === "file" && uri.fsPath.endsWith(".html")) await showReport(uri);
    else return { success: await vscode.env.openExternal(uri) };
    return { success: true };
  } catch (error) {
    console.warn("warpsmith: a document is not shown:", error);
    return { success: false };
  }
}
