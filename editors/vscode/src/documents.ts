// Documents that the server opens: compiler output of a kernel in a column beside it, and reports in a panel.
import { promises as fs } from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";
import type { ShowDocumentParams, ShowDocumentResult } from "vscode-languageclient/node";

/** The content policy of a report, which is a page without scripts or external resources. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

async function showBeside(uri: vscode.Uri): Promise<void> {
  // The text may have changed since it was last opened.
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
