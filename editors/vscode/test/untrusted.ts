// Tests in a folder that is not trusted: there are diagnostics, and nothing is run.
import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import type { CodeAction } from "vscode-languageclient/node";
import { api, codes, inFolder, place, say, show, until } from "./common";

export async function run(): Promise<void> {
  assert.equal(vscode.workspace.isTrusted, false);
  const uri = inFolder("mistakes.py");
  const { document } = await show(uri);
  const { session, status } = await api();
  await until("findings", () => codes(uri).includes("L001"));
  // The folder's own settings name another program.
  assert.equal(session.server?.from, "extension");
  const client = session.running;
  assert.ok(client);
  const position = client.code2ProtocolConverter.asPosition(place(document, "def softmax_kernel").start);
  // The editor's own command omits disabled actions.
  const [optimize] = await client.sendRequest<CodeAction[]>("textDocument/codeAction", {
    textDocument: { uri: uri.toString() },
    range: { start: position, end: position },
    context: { diagnostics: [], only: ["refactor.rewrite"] },
  });
  assert.match(optimize?.disabled?.reason ?? "", /not trusted/);
  await until("status", () => status.text.includes("findings only"));
  // A compiler request would happen within this time.
  await document.save();
  await new Promise((resolve) => setTimeout(resolve, 3000));
  assert.match(status.lines().join("\n"), /nothing is run/);
  assert.deepEqual(codes(uri).filter((code) => code.startsWith("C")), []);
  const { line, character } = place(document, "tl.load").start;
  const refused = await session.execute("warpsmith.inspect", { uri: uri.toString(), position: { line, character }, stage: "ttir" });
  assert.equal(refused, undefined);
  say(`untrusted: ${codes(uri).join(" ")}; ${status.lines().join("; ")}`);
}
