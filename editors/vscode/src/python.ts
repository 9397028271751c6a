// The interpreters that the user selected in the Python extension, one for each folder of the workspace.
import * as vscode from "vscode";

const EXTENSION = "ms-python.python";

/** The part of the Python extension's API that is used. */
interface PythonApi {
  environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(path: { path: string }): Promise<{ executable: { uri?: vscode.Uri } } | undefined>;
    onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

export class Interpreters implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly known = new Map<string, string>();
  private readonly subscriptions: vscode.Disposable[] = [this.changed];
  private loading: Promise<void> | undefined;
  private isListening = false;

  /** Fires when the interpreter of a folder has changed. */
  readonly onDidChange = this.changed.event;

  /** The interpreter of a folder, if the Python extension has reported it. */
  of(folder: vscode.Uri | undefined): string | undefined {
    return this.known.get(folder?.toString() ?? "") ?? this.known.get("");
  }

  /** The interpreter of the first folder, after the Python extension has reported it. */
  async first(): Promise<string | undefined> {
    await this.load();
    return this.of(vscode.workspace.workspaceFolders?.[0]?.uri);
  }

  /** Queries the Python extension, if it is installed. Its start may take seconds, so nothing else waits for this. */
  load(): Promise<void> {
    if (!vscode.workspace.isTrusted) return Promise.resolve();
    this.loading ??= this.ask().catch((error: unknown) => console.warn("warpsmith: the Python extension:", error));
    return this.loading;
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  private async ask(): Promise<void> {
    const extension = vscode.extensions.getExtension<PythonApi>(EXTENSION);
    if (!extension) return;
    const { environments } = await extension.activate();
    if (!this.isListening) {
      this.isListening = true;
      const again = (): void => {
        this.loading = undefined;
        void this.load();
      };
      this.subscriptions.push(environments.onDidChangeActiveEnvironmentPath(again));
      this.subscriptions.push(vscode.workspace.onDidChangeWorkspaceFolders(again));
    }
    const before = JSON.stringify([...this.known]);
    this.known.clear();
    const folders = vscode.workspace.workspaceFolders ?? [];
    for (const folder of [undefined, ...folders.map((folder) => folder.uri)]) {
      const environment = await environments.resolveEnvironment(environments.getActiveEnvironmentPath(folder));
      const python = environment?.executable.uri?.fsPath;
      if (python) this.known.set(folder?.toString() ?? "", python);
    }
    if (JSON.stringify([...this.known]) !== before) this.changed.fire();
  }
}
