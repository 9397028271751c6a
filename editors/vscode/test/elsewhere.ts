// Tests of a package without a server: it is found in the selected environment, then on the PATH, then not at all.
import * as assert from "node:assert/strict";
import { promises as fs } from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";
import { api, codes, inFolder, say, show, until } from "./common";

export async function run(): Promise<void> {
  const { session, status } = await api();
  const uri = inFolder("mistakes.py");
  await show(uri);
  await until("findings", () => codes(uri).includes("L001"));
  for (const from of ["environment", "PATH"] as const) {
    const server = await until(`server from ${from}`, () => session.server?.from === from && session.server);
    say(`server: ${path.relative(inFolder("..").fsPath, server.path)} from ${server.from}`);
    await fs.unlink(server.path);
    await vscode.commands.executeCommand("warpsmith.restart");
  }
  await until("status", () => status.text.includes("no server"));
  assert.equal(session.server, undefined);
  const [why] = status.lines();
  assert.match(why ?? "", /was not found.*Install it there/);
  say(`server: ${why}`);
}
