// The running server and its connection to the editor.
import { spawn, type ChildProcess } from "node:child_process";
import * as vscode from "vscode";
import type { ExecuteCommandSignature, Middleware, StaticFeature } from "vscode-languageclient/node";
import { DidChangeConfigurationNotification, ExecuteCommandRequest, LanguageClient, RevealOutputChannelOn, State } from "vscode-languageclient/node";
import { Crashes } from "./crashes";
import { showDocument } from "./documents";
import type { Jobs } from "./jobs";
import { answer, type Asked } from "./models";
import type { Offers } from "./offers";
import type { Interpreters } from "./python";
import type { Searches } from "./search/searches";
import type { News } from "./search/types";
import { findServer, sayMissing, type Server } from "./server";
import type { Settings } from "./settings";
import type { ServerStatus, StatusItem } from "./status";

/** The schemes of the user's own documents, which exclude old versions and output channels. */
const SCHEMES = ["file", "untitled", "vscode-vfs", "vscode-notebook-cell"];

/** Makes the server push its diagnostics. This client never pulls those of notebook cells. */
const PUSHED: StaticFeature = {
  fillClientCapabilities(capabilities) {
    delete capabilities.textDocument?.diagnostic;
    delete capabilities.workspace?.diagnostics;
  },
  initialize() {},
  getState: () => ({ kind: "static" }),
  clear() {},
};

export interface Parts {
  extension: vscode.Uri;
  interpreters: Interpreters;
  settings: Settings;
  jobs: Jobs;
  status: StatusItem;
  offers: Offers;
  searches: Searches;
  log: vscode.OutputChannel;
  trace: vscode.OutputChannel;
}

export class Session {
  private client: LanguageClient | undefined;
  private process: ChildProcess | undefined;
  private found: Server | undefined;
  private stopping = new AbortController();
  private turn: Promise<void> = Promise.resolve();

  constructor(private readonly parts: Parts) {}

  /** The client, if the server runs. */
  get running(): LanguageClient | undefined {
    return this.client?.state === State.Running ? this.client : undefined;
  }

  /** The running server. */
  get server(): (Server & { pid: number | undefined }) | undefined {
    return this.running && this.found && { ...this.found, pid: this.process?.pid };
  }

  /** Starts the server, after ending a running one. */
  restart(): Promise<void> {
    return this.then(async () => {
      await this.end();
      await this.begin();
    });
  }

  stop(): Promise<void> {
    return this.then(() => this.end());
  }

  /** Makes the server request the settings again. */
  async tellSettings(): Promise<void> {
    await this.running?.sendNotification(DidChangeConfigurationNotification.type, { settings: null });
  }

  /** Runs a command of the server. Errors are shown, since the user has started the command. */
  async execute(command: string, argument: unknown): Promise<unknown> {
    const client = this.running;
    if (!client) {
      void vscode.window.showWarningMessage("Warpsmith's server does not run.");
      return undefined;
    }
    try {
      return await client.sendRequest(ExecuteCommandRequest.type, { command, arguments: [argument] });
    } catch (error) {
      void vscode.window.showWarningMessage(`Warpsmith: ${error instanceof Error ? error.message : String(error)}`);
      return undefined;
    }
  }

  /** Sends a custom request to the server, after a pending start. */
  async ask<T>(method: string, params: unknown): Promise<T> {
    await this.turn;
    const client = this.running;
    if (!client) throw new Error("Warpsmith's server does not run.");
    return client.sendRequest<T>(method, params);
  }

  /** Queues a start or stop of the server. */
  private then(change: () => Promise<void>): Promise<void> {
    this.stopping.abort();
    this.turn = this.turn.then(change).catch((error: unknown) => this.parts.log.appendLine(String(error)));
    return this.turn;
  }

  private async end(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client?.needsStop()) await client.stop().catch(() => this.process?.kill());
    await client?.dispose().catch(() => undefined);
  }

  private async begin(): Promise<void> {
    const { extension, interpreters, status, log } = this.parts;
    const found = await findServer(extension, interpreters);
    if (typeof found === "string") {
      status.setServer(found);
      log.appendLine(found);
      void sayMissing(found);
      return;
    }
    this.found = found;
    log.appendLine(`Starting ${found.path} (${found.from})`);
    this.stopping = new AbortController();
    this.client = this.connect(found);
    await this.client.start();
  }

  private connect(server: Server): LanguageClient {
    const { settings, jobs, status, offers, searches, log, trace } = this.parts;
    const start = async (): Promise<ChildProcess> => {
      this.process = spawn(server.path, ["serve"], { stdio: "pipe" });
      return this.process;
    };
    const client = new LanguageClient("warpsmith", "Warpsmith", start, {
      documentSelector: SCHEMES.map((scheme) => ({ scheme, language: "python" })),
      outputChannel: log,
      traceOutputChannel: trace,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationOptions: () => settings.initial(),
      errorHandler: new Crashes(this.stopping.signal, () => log.show()),
      middleware: this.middleware(),
    });
    client.registerFeature(PUSHED);
    offers.serve(client);
    client.onNotification("warpsmith/status", (told: ServerStatus) => status.setStatus(told));
    client.onRequest("warpsmith/model", (asked: Asked, token: vscode.CancellationToken) => answer(asked, token));
    client.onNotification("warpsmith/search", (news: News) => searches.take(news));
    client.onDidChangeState(({ newState }) => {
      if (newState !== State.Running) {
        jobs.clear();
        searches.clear();
      }
      if (client === this.client) status.setServer(newState);
    });
    return client;
  }

  private middleware(): Middleware {
    const { settings, jobs } = this.parts;
    const execute = (command: string, args: unknown[], _: ExecuteCommandSignature): Promise<unknown> => this.execute(command, args[0]);
    return {
      executeCommand: execute,
      handleWorkDoneProgress: (token, value, next) => {
        if (!jobs.take(token, value)) next(token, value);
      },
      window: { showDocument: (params) => showDocument(params) },
      workspace: {
        configuration: ({ items }) => items.map((item) => settings.of(item.scopeUri === undefined ? undefined : vscode.Uri.parse(item.scopeUri))),
        didChangeConfiguration: () => this.tellSettings(),
      },
    };
  }
}
