// Tests of two folders in one window, each with its own settings and interpreter.
import * as assert from "node:assert/strict";
import { promises as fs } from "node:fs";
import * as vscode from "vscode";
import { api, codes, say, show, until } from "./common";

export async function run(): Promise<void> {
  const [first, second] = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri);
  assert.ok(first && second);
  const { status } = await api();
  const [one, other] = [first, second].map((folder) => vscode.Uri.joinPath(folder, "mistakes.py"));
  assert.ok(one && other);
  await show(one);
  await show(other);
  await until("findings of both", () => codes(one).includes("L002") && codes(other).includes("L001"));
  // `.vscode/settings.json` of the first folder ignores L001, and that of the second one L002.
  assert.ok(!codes(one).includes("L001") && !codes(other).includes("L002"));
  say(`folders: ${codes(one).join(" ")} and ${codes(other).join(" ")}`);

  const python = (): string => status.lines().find((line) => line.startsWith("Python: ")) ?? "";
  const selected = (await fs.readFile(vscode.Uri.joinPath(first, "selected-python").fsPath, "utf8")).trim();
  await until("interpreter", () => python().startsWith(`Python: ${selected}`));
  say(`interpreter: ${python()}`);
}
