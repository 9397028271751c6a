// Tests of language models of another extension: requests, cancellation, limits, and a search on a simulated device.
import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { answer, type Asked } from "../src/models";
import { api, inFolder, place, say, show, until } from "./common";

interface Seen {
  id: string;
  texts: [number, string][];
  modelOptions: Record<string, unknown>;
  cancelled: boolean;
}

const seen = async (id: string): Promise<Seen[]> =>
  ((await vscode.commands.executeCommand<Seen[]>("stand-in.seen")) ?? []).filter((asked) => asked.id === id);

function question(model: string | null): Asked {
  const messages: Asked["messages"] = [
    { role: "user", text: "Write it." },
    { role: "assistant", text: "No." },
    { role: "user", text: "Do." },
  ];
  return { model, system: "Be brief.", messages, temperature: 0.5, maxTokens: 1000, stop: [] };
}

const never = new vscode.CancellationTokenSource().token;

async function refused(model: string): Promise<string> {
  const error: unknown = await answer(question(model), never).then(() => undefined, (error: unknown) => error);
  assert.ok(error instanceof Error, `${model} answers`);
  return error.message;
}

async function asked(): Promise<void> {
  // A model can be selected by its family as well as by its id.
  const { text, finish, input, output } = await answer(question("writer-family"), never);
  assert.match(text, /^Diagnosis: [^]*BLOCK=32/);
  assert.deepEqual([finish, input, output], ["stop", "Be brief.Write it.No.Do.".length, text.length]);
  const [first] = await seen("writer");
  const { User, Assistant } = vscode.LanguageModelChatMessageRole;
  assert.deepEqual(first?.texts, [[User, "Be brief."], [User, "Write it."], [Assistant, "No."], [User, "Do."]]);
  assert.deepEqual(first?.modelOptions, { max_tokens: 1000, temperature: 0.5 });
  const endless = await answer({ ...question("endless"), maxTokens: 500 }, never);
  assert.equal(endless.finish, "length");
  const unknown = await refused("nobody");
  assert.match(unknown, /no language model `nobody`: set `model.name` to one of .*writer-family/);
  const broken = await refused("broken");
  assert.match(broken, /broken did not answer \(.*the line is cut.*\): try again/);
  say(`asked: ${output} tokens; ${unknown}; ${broken}`);
}

/** Without recorded calls the user would be asked first. */
async function record(): Promise<void> {
  const { session, status } = await api();
  const editor = await show(inFolder("scale.py"));
  const at = place(editor.document, "def scale").start;
  editor.selection = new vscode.Selection(at, at);
  await until("job", async () => session.execute("warpsmith.record", { uri: editor.document.uri.toString() }));
  await until("the recording", () => status.text.includes("Recording"));
  await until("end of the recording", () => !status.text.includes("Recording"), 120);
}

async function optimize(): Promise<void> {
  const { searches } = await api();
  await vscode.commands.executeCommand("warpsmith.optimizeKernel");
  await until("a search", () => searches.running().length > 0);
}

async function use(model: string): Promise<void> {
  await vscode.workspace.getConfiguration("warpsmith").update("model.name", model, vscode.ConfigurationTarget.Workspace);
}

async function stopped(): Promise<void> {
  const { status } = await api();
  await optimize();
  await until("a question", async () => (await seen("sleeper")).length > 0, 120);
  // The server receives this while the search stops.
  await use("writer");
  const before = Date.now();
  await vscode.commands.executeCommand("warpsmith.stopJob");
  await until("the model to be stopped", async () => (await seen("sleeper")).every(({ cancelled }) => cancelled));
  say(`stopped: ${Date.now() - before} ms after the command`);
  await until("end of the search", () => !status.text.includes("Optimizing"), 120);
}

async function searched(): Promise<void> {
  const { searches } = await api();
  await optimize();
  const [search] = await until("end of the search", () => searches.running().length === 0 && searches.all(), 120);
  assert.ok(search);
  const kinds = search.candidates.map(({ kind, fate }) => `${kind}: ${fate}`);
  assert.ok(kinds.some((kind) => /^model .*: right$/.test(kind)), `${kinds.join("; ")} | ${search.message}`);
  assert.match(search.message, /writer was asked \d+ times/);
  say(`searched: ${kinds.join("; ")} | ${search.message}`);
}

export async function run(): Promise<void> {
  await use("sleeper");
  await asked();
  await record();
  await stopped();
  await searched();
}
