// Finds the server: from the setting, in this extension, in the selected environment, or on PATH.
import { constants, promises as fs } from "node:fs";
import { homedir } from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import type { Interpreters } from "./python";

export interface Server {
  path: string;
  from: "setting" | "extension" | "environment" | "PATH";
}

const NAME = process.platform === "win32" ? "warpsmith.exe" : "warpsmith";

async function isExecutable(file: string): Promise<boolean> {
  try {
    await fs.access(file, constants.X_OK);
    return (await fs.stat(file)).isFile();
  } catch {
    return false;
  }
}

async function firstExecutable(folders: readonly string[]): Promise<string | undefined> {
  for (const folder of folders.filter((folder) => path.isAbsolute(folder))) {
    const file = path.join(folder, NAME);
    if (await isExecutable(file)) return file;
  }
  return undefined;
}

/** The setting as a path; relative ones are resolved against the first folder of the workspace. */
function fromSetting(): string | undefined {
  const named = vscode.workspace.getConfiguration("warpsmith").get<string | null>("server.path")?.trim();
  if (!named) return undefined;
  const home = named.replace(/^~(?=$|[\\/])/, homedir());
  return path.resolve(vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "/", home);
}

/** The server, or the reason why there is none. */
export async function findServer(extension: vscode.Uri, interpreters: Interpreters): Promise<Server | string> {
  const named = fromSetting();
  if (named !== undefined) {
    if (await isExecutable(named)) return { path: named, from: "setting" };
    return `The setting warpsmith.server.path names ${named}, which is no program that can be run.`;
  }
  const bundled = vscode.Uri.joinPath(extension, "server", NAME).fsPath;
  if (await isExecutable(bundled)) return { path: bundled, from: "extension" };
  // Programs of a folder run only if the user trusts it.
  const python = vscode.workspace.isTrusted ? await interpreters.first() : undefined;
  const environment = python && (await firstExecutable([path.dirname(python)]));
  if (environment) return { path: environment, from: "environment" };
  const onPath = await firstExecutable((process.env["PATH"] ?? "").split(path.delimiter));
  if (onPath) return { path: onPath, from: "PATH" };
  return (
    "Warpsmith's language server was not found: this package of the extension carries none, and there is no " +
    "`warpsmith` in the selected Python environment or on the PATH. Install it there, or name it in the settings."
  );
}

/** Shows that there is no server, with the possible actions. */
export async function sayMissing(why: string): Promise<void> {
  const choose = "Choose the Program…";
  const settings = "Open Settings";
  const about = "About This Extension";
  const chosen = await vscode.window.showErrorMessage(why, choose, settings, about);
  if (chosen === choose) {
    const picked = await vscode.window.showOpenDialog({ title: "The warpsmith program", canSelectMany: false });
    const file = picked?.[0]?.fsPath;
    const target = vscode.ConfigurationTarget.Global;
    if (file) await vscode.workspace.getConfiguration("warpsmith").update("server.path", file, target);
  } else if (chosen === settings) {
    await vscode.commands.executeCommand("workbench.action.openSettings", "warpsmith.server.path");
  } else if (chosen === about) {
    await vscode.commands.executeCommand("extension.open", "warpsmith.warpsmith");
  }
}
