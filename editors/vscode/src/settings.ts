// The settings that are sent to the server: only those that the user has set, so that `warpsmith.toml` applies to the others.
import * as vscode from "vscode";
import type { Interpreters } from "./python";

/** Keys that only the extension uses. */
const OWN = /^(server|trace)\./;

export class Settings {
  private readonly keys: string[];

  constructor(
    extension: vscode.Extension<unknown>,
    private readonly interpreters: Interpreters,
  ) {
    const groups: { properties: object }[] = extension.packageJSON.contributes.configuration;
    const all = groups.flatMap((group) => Object.keys(group.properties));
    this.keys = all.map((key) => key.replace(/^warpsmith\./, "")).filter((key) => !OWN.test(key));
  }

  /** The settings of a folder, with its selected interpreter. */
  of(folder: vscode.Uri | undefined): Record<string, unknown> {
    const config = vscode.workspace.getConfiguration("warpsmith", folder);
    const told: Record<string, unknown> = {};
    for (const key of this.keys) {
      const { defaultValue: _, key: __, languageIds: ___, ...set } = config.inspect(key) ?? { key };
      if (Object.values(set).some((value) => value !== undefined)) told[key] = config.get(key);
    }
    const interpreter = this.interpreters.of(folder);
    return interpreter === undefined ? told : { ...told, interpreter };
  }

  /** The initialization options of the server. */
  initial(): Record<string, unknown> {
    const { interpreter, ...settings } = this.of(vscode.workspace.workspaceFolders?.[0]?.uri);
    const told = { workspaceTrusted: vscode.workspace.isTrusted, status: true, search: true, languageModel: true };
    return { settings, interpreter, ...told };
  }
}
