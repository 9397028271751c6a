// Tests in a trusted folder: diagnostics, hover, fixes, settings, notebooks, and the end of the server.
import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { actionsAt, api, codes, inFolder, place, say, show, until } from "./common";

async function findings(): Promise<void> {
  const uri = inFolder("mistakes.py");
  const first = new Promise<number>((resolve) => {
    const listening = vscode.languages.onDidChangeDiagnostics(() => {
      if (codes(uri).length === 0) return;
      listening.dispose();
      resolve(performance.now());
    });
  });
  const { document } = await show(uri);
  const { activated, session } = await api();
  const milliseconds = Math.round((await first) - activated);
  const found = await until("findings", () => codes(uri).includes("L001") && codes(uri));
  say(`findings ${milliseconds} ms after the activation: ${found.join(" ")}`);
  assert.equal(session.server?.from, "extension");

  const [hover] = await vscode.commands.executeCommand<vscode.Hover[]>("vscode.executeHoverProvider", uri, place(document, "cidv").start);
  const text = hover?.contents.map((part) => (typeof part === "string" ? part : part.value)).join("\n") ?? "";
  assert.match(text, /unknown-member/);

  const fix = await until("fix", async () => (await actionsAt(document, "cidv")).find((action) => action.isPreferred));
  assert.ok(fix.edit && (await vscode.workspace.applyEdit(fix.edit)));
  assert.match(document.getText(), /tl\.cdiv\(n_cols, BLOCK\)/);
  await until("end of the finding", () => !codes(uri).includes("L001"));
  await vscode.commands.executeCommand("undo");
  await until("finding after undo", () => codes(uri).includes("L001"));
  say(`hover and fix: ${fix.title}`);
}

async function settings(): Promise<void> {
  const uri = inFolder("mistakes.py");
  const config = vscode.workspace.getConfiguration("warpsmith", uri);
  await config.update("ignore", ["L001"], vscode.ConfigurationTarget.Workspace);
  await until("ignored finding", () => codes(uri).length > 0 && !codes(uri).includes("L001"));
  await config.update("ignore", undefined, vscode.ConfigurationTarget.Workspace);
  await until("finding again", () => codes(uri).includes("L001"));
  const inFile = inFolder("own/ignored.py");
  await show(inFile);
  await until("finding of another rule", () => codes(inFile).includes("L002"));
  assert.ok(!codes(inFile).includes("L001"), "warpsmith.toml counts for what the editor does not set");
  say("settings: the editor's, and the file's below them");
}

async function notebook(): Promise<void> {
  const document = await vscode.workspace.openNotebookDocument(inFolder("cells.ipynb"));
  await vscode.window.showNotebookDocument(document);
  const cell = document.getCells().find((cell) => cell.document.getText().includes("float32("))?.document;
  assert.ok(cell);
  const found = await until("finding in a cell", () => codes(cell.uri).includes("L002") && codes(cell.uri));
  const fix = await until("fix in a cell", async () => (await actionsAt(cell, "tl.float32(n)")).find((action) => action.isPreferred));
  assert.ok(fix.edit && (await vscode.workspace.applyEdit(fix.edit)));
  await until("end of the finding in the cell", () => !codes(cell.uri).includes("L002"));
  assert.match(cell.getText(), /tl\.cast\(n, tl\.float32\)/);
  say(`notebook: ${found.join(" ")}, mended`);
}

async function untitled(): Promise<void> {
  const content = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, n):\n    tl.store(x, tl.float32(n))\n";
  const document = await vscode.workspace.openTextDocument({ language: "python", content });
  await until("finding in a text without a file", () => codes(document.uri).includes("L002"));
  say("untitled: checked");
}

async function restarts(): Promise<void> {
  const { session } = await api();
  const uri = inFolder("mistakes.py");
  const editor = await show(uri);
  for (const wait of ["at once", "after a second"]) {
    const pid = session.server?.pid;
    assert.ok(pid);
    process.kill(pid, "SIGKILL");
    const began = performance.now();
    await until(`new server ${wait}`, () => session.server && session.server.pid !== pid);
    const milliseconds = Math.round(performance.now() - began);
    // The server knows the current text.
    const at = place(editor.document, "highest = -float");
    await until("edit", () => editor.edit((edit) => edit.insert(at.start, "tl.nope; ")));
    await until("finding by the new server", () => codes(uri).filter((code) => code === "L001").length === 2);
    await vscode.commands.executeCommand("undo");
    await until("end of it", () => codes(uri).filter((code) => code === "L001").length === 1);
    say(`killed: back ${wait} (${milliseconds} ms)`);
  }
  const pid = session.server?.pid;
  await vscode.commands.executeCommand("warpsmith.restart");
  await until("server after the command", () => session.server && session.server.pid !== pid);
  say("restart: another process");
}

async function missing(): Promise<void> {
  const { session, status } = await api();
  const config = vscode.workspace.getConfiguration("warpsmith");
  await config.update("server.path", "/nowhere/warpsmith", vscode.ConfigurationTarget.Global);
  await until("status without a server", () => !session.server && status.text.includes("no server"));
  assert.match(status.lines().join(), /names \/nowhere\/warpsmith/);
  await config.update("server.path", undefined, vscode.ConfigurationTarget.Global);
  await until("server again", () => session.server);
  say("missing: said, and back");
}

/** The test gives this suite no device. */
async function noDevice(): Promise<void> {
  const { whyNot } = await api();
  const editor = await show(inFolder("mistakes.py"));
  const { start } = place(editor.document, "tl.load");
  editor.selection = new vscode.Selection(start, start);
  const why = await until("reason", async () => {
    const why = await whyNot();
    return why !== undefined && !why.startsWith("still looking") && why;
  });
  assert.match(why, /NVIDIA/);
  say(`no device: ${why}`);
}

async function commands(): Promise<void> {
  const registered = new Set(await vscode.commands.getCommands(true));
  const { contributes } = vscode.extensions.getExtension("warpsmith.warpsmith")?.packageJSON;
  const named: string[] = contributes.commands.map((command: { command: string }) => command.command);
  assert.deepEqual(named.filter((name) => !registered.has(name)), []);
  say(`commands: ${named.length}`);
}

export async function run(): Promise<void> {
  await findings();
  await commands();
  await noDevice();
  await settings();
  await notebook();
  await untitled();
  await restarts();
  await missing();
}
