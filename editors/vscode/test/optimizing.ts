// Tests with Triton and a simulated device: compiler status and output, lenses, a recording and a search.
import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { api, inFolder, place, say, show, until } from "./common";

async function compiler(): Promise<void> {
  const { status } = await api();
  const editor = await show(inFolder("scale.py"));
  const { document } = editor;
  await until("compiler", () => status.lines().some((line) => /Triton 3\./.test(line)) && status.text.includes("$(check)"), 120);
  // The resources of a kernel are determined when its file is saved.
  await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), "# A kernel.\n"));
  await document.save();
  const lenses = await until("lens", async () => {
    const found = await vscode.commands.executeCommand<vscode.CodeLens[]>("vscode.executeCodeLensProvider", document.uri);
    return found.some((lens) => lens.command?.title.includes("registers")) && found;
  }, 120);
  say(`compiler: ${status.lines().join("; ")}; lens: ${lenses.map((lens) => lens.command?.title).join(" | ")}`);
}

async function inspect(): Promise<void> {
  const { session } = await api();
  const editor = await show(inFolder("scale.py"));
  const uri = editor.document.uri.toString();
  const at = place(editor.document, "tl.load").start;
  await session.execute("warpsmith.inspect", { uri, position: { line: at.line, character: at.character }, stage: "ttir" });
  const text = await until("text beside", () => vscode.window.visibleTextEditors.find((shown) => shown.document.fileName.endsWith("scale.ttir")));
  assert.equal(text.viewColumn, vscode.ViewColumn.Two);
  assert.match(text.document.getText(), /tt\.load/);
  assert.equal(vscode.window.activeTextEditor?.document.uri.toString(), uri);
  say("inspect: TTIR beside the source, which keeps the focus");
}

async function record(): Promise<void> {
  const { session, status } = await api();
  const editor = await show(inFolder("scale.py"));
  const at = place(editor.document, "def scale").start;
  editor.selection = new vscode.Selection(at, at);
  // The server looks for devices at its start, and refuses a search until then.
  await until("job", async () => session.execute("warpsmith.record", { uri: editor.document.uri.toString() }));
  const shown = await until("progress in the status bar", () => status.text.includes("Recording") && status.text);
  await until("end of the recording", () => !status.text.includes("Recording"), 120);
  say(`record: ${shown}`);
}

async function optimize(): Promise<void> {
  const { session, status } = await api();
  const editor = await show(inFolder("scale.py"));
  const at = place(editor.document, "def scale").start;
  editor.selection = new vscode.Selection(at, at);
  await vscode.commands.executeCommand("warpsmith.optimizeKernel");
  const shown = await until("progress of the search", () => status.text.includes("Optimizing scale") && status.text);
  await new Promise((resolve) => setTimeout(resolve, 3000));
  const later = status.text;
  await vscode.commands.executeCommand("warpsmith.stopJob");
  await until("end of the search", () => !status.text.includes("Optimizing"), 120);
  assert.ok(session.server);
  say(`optimize: ${shown}, then ${later}; stopped`);
}

export async function run(): Promise<void> {
  await compiler();
  await inspect();
  await record();
  await optimize();
}
