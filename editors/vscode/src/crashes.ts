// Restarts the server after its process ended unexpectedly, with a longer delay each time.
import * as vscode from "vscode";
import { CloseAction, ErrorAction } from "vscode-languageclient/node";
import type { CloseHandlerResult, ErrorHandler, ErrorHandlerResult } from "vscode-languageclient/node";

/** The delays before each restart, in milliseconds. After the last one there is no further restart. */
const WAITS = [0, 1000, 4000, 16_000] as const;
/** The run time, in milliseconds, after which an earlier end of the server no longer counts. */
const WELL = 180_000;

export class Crashes implements ErrorHandler {
  private ends: number[] = [];

  /** `stop` aborts a delay; `showLog` is called by the button. */
  constructor(
    private readonly stop: AbortSignal,
    private readonly showLog: () => void,
  ) {}

  error(): ErrorHandlerResult {
    // A broken message is logged; when the pipe itself is broken, `closed` follows.
    return { action: ErrorAction.Continue, handled: true };
  }

  async closed(): Promise<CloseHandlerResult> {
    const now = Date.now();
    this.ends = [...this.ends.filter((end) => now - end < WELL), now];
    const wait = WAITS[this.ends.length - 1];
    if (wait === undefined) {
      void this.sayStopped();
      return { action: CloseAction.DoNotRestart, message: "The server ended too often.", handled: true };
    }
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, wait);
      this.stop.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
    });
    if (this.stop.aborted) return { action: CloseAction.DoNotRestart, handled: true };
    return { action: CloseAction.Restart, message: `The server ended; it starts again after ${wait} ms.`, handled: true };
  }

  private async sayStopped(): Promise<void> {
    const restart = "Restart";
    const log = "Show the Log";
    const text = `Warpsmith's server ended ${this.ends.length} times in a short while and is not started again.`;
    const chosen = await vscode.window.showErrorMessage(text, restart, log);
    if (chosen === restart) await vscode.commands.executeCommand("warpsmith.restart");
    else if (chosen === log) this.showLog();
  }
}
