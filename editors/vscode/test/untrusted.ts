// In a folder that is not trusted: findings, and nothing is run.
import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { actionsAt, api, codes, inFolder, place, say, show, until } from "./common";

export async function run(): Promise<void> {
  assert.equal(vscode.workspace.isTrusted, false);
  const uri = inFolder("mistakes.py");
  const { document } = await show(uri);
  const { session, status } = await api();
  await until("findings", () => codes(uri).includes("L001"));
  // The folder's own settings name another program.
  assert.equal(session.server?.from, "extension");
  const optimize = await until("disabled action", async () => (await actionsAt(document, "def softmax_kernel")).find((action) => action.title.startsWith("Optimize")));
  assert.match(optimize.disabled?.reason ?? "", /not trusted/);
  await until("status", () => status.text.includes("findings only"));
  // Long enough for a compiler to be asked, if it were.
  await document.save();
  await new Promise((resolve) => setTimeout(resolve, 3000));
  assert.match(status.lines().join("\n"), /nothing is run/);
  assert.deepEqual(codes(uri).filter((code) => code.startsWith("C")), []);
  const { line, character } = place(document, "tl.load").start;
  const refused = await session.execute("warpsmith.inspect", { uri: uri.toString(), position: { line, character }, stage: "ttir" });
  assert.equal(refused, undefined);
  say(`untrusted: ${codes(uri).join(" ")}; ${status.lines().join("; ")}`);
}
