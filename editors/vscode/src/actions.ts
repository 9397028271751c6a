// The server's code actions at the cursor, for the commands of the palette.
import * as vscode from "vscode";
import type { CodeAction, LanguageClient, Position } from "vscode-languageclient/node";
import { CodeActionRequest, CodeActionTriggerKind } from "vscode-languageclient/node";
import type { Session } from "./session";

export interface Cursor {
  client: LanguageClient;
  uri: string;
  position: Position;
}

/** The cursor in a Python document. Shows a message if there is none. */
export function cursor(session: Session): Cursor | undefined {
  const editor = vscode.window.activeTextEditor;
  const client = session.running;
  if (!client) {
    void vscode.window.showWarningMessage("Warpsmith's server does not run.");
  } else if (editor?.document.languageId !== "python") {
    void vscode.window.showWarningMessage("Put the cursor into a Triton kernel first.");
  } else {
    const position = client.code2ProtocolConverter.asPosition(editor.selection.active);
    return { client, uri: client.code2ProtocolConverter.asUri(editor.document.uri), position };
  }
  return undefined;
}

/** The actions of a kind at the cursor, including disabled ones. */
export async function actions({ client, uri, position }: Cursor, kind: string): Promise<CodeAction[]> {
  const found = await client.sendRequest(CodeActionRequest.type, {
    textDocument: { uri },
    range: { start: position, end: position },
    context: { diagnostics: [], only: [kind], triggerKind: CodeActionTriggerKind.Invoked },
  });
  // `CodeAction.is` of the library rejects disabled actions.
  return (found ?? []).filter((action): action is CodeAction => typeof action.command !== "string");
}

/** The argument of an action's command. */
export function argument(action: CodeAction): Record<string, unknown> {
  return (action.command?.arguments?.[0] ?? {}) as Record<string, unknown>;
}

/** The reason why the kernel at the cursor cannot be optimized, such as a missing GPU. */
export async function whyNot(session: Session): Promise<string | undefined> {
  const isPython = vscode.window.activeTextEditor?.document.languageId === "python";
  const at = isPython && session.running ? cursor(session) : undefined;
  const offered = at ? await actions(at, "refactor.rewrite") : [];
  return offered.find((action) => action.disabled)?.disabled?.reason;
}

/** Runs the first enabled action of a kind, or shows the reason why there is none. */
export async function take(session: Session, kind: string, fits: (action: CodeAction) => boolean, none: string): Promise<void> {
  const at = cursor(session);
  if (!at) return;
  const offered = await actions(at, kind);
  const action = offered.find(fits);
  const refused = offered.find((action) => action.disabled);
  if (action?.command) {
    await session.execute(action.command.command, argument(action));
  } else if (refused?.disabled) {
    void vscode.window.showWarningMessage(`Warpsmith: ${refused.disabled.reason}`);
  } else {
    void vscode.window.showWarningMessage(`Warpsmith: ${none}`);
  }
}
