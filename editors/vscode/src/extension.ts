// The entry point of the extension.
import * as vscode from "vscode";
import { whyNot } from "./actions";
import { registerCommands } from "./commands";
import { Jobs } from "./jobs";
import { Offers } from "./offers";
import { Interpreters } from "./python";
import { Panels } from "./search/panels";
import { Searches } from "./search/searches";
import { Session } from "./session";
import { Settings } from "./settings";
import { StatusItem } from "./status";

/** The interface for tests of this extension. */
export interface Api {
  session: Session;
  status: StatusItem;
  searches: Searches;
  /** The reason why the kernel at the cursor cannot be optimized. */
  whyNot(): Promise<string | undefined>;
  /** The start of the activation, as `performance.now()`. */
  activated: number;
}

let session: Session | undefined;

export function activate(context: vscode.ExtensionContext): Api {
  const activated = performance.now();
  const interpreters = new Interpreters();
  const jobs = new Jobs();
  const status = new StatusItem(jobs);
  const offers = new Offers();
  const searches = new Searches();
  const log = vscode.window.createOutputChannel("Warpsmith", "log");
  const trace = vscode.window.createOutputChannel("Warpsmith Trace");
  const settings = new Settings(context.extension, interpreters);
  const extension = context.extensionUri;
  const started = new Session({ extension, interpreters, settings, jobs, status, offers, searches, log, trace });
  session = started;
  // This is not awaited, so that neither the editor nor the Python extension is delayed.
  const start = (): void => void started.restart().then(() => interpreters.load());
  context.subscriptions.push(interpreters, jobs, status, offers, searches, log, trace);
  context.subscriptions.push(new Panels(extension, started, searches, offers));
  context.subscriptions.push(...registerCommands(started, { status, jobs, searches, log }));
  context.subscriptions.push(
    // A server from the selected environment changes with the environment.
    interpreters.onDidChange(() => (started.server?.from === "environment" ? started.restart() : started.tellSettings())),
    vscode.workspace.onDidGrantWorkspaceTrust(start),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("warpsmith.server")) void started.restart();
    }),
  );
  start();
  return { session: started, status, searches, whyNot: () => whyNot(started), activated };
}

export async function deactivate(): Promise<void> {
  await session?.stop();
}
