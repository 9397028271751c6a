// The editor's language models, which the server uses in a search. VS Code itself asks the user for permission.
import * as vscode from "vscode";
import { ErrorCodes, LSPErrorCodes, ResponseError } from "vscode-languageclient/node";

/** The parameters of `warpsmith/model`. */
export interface Asked {
  /** The id or the family of a model; `null` means any model. */
  model: string | null;
  system: string;
  messages: { role: "user" | "assistant"; text: string }[];
  temperature: number | null;
  maxTokens: number;
  stop: string[];
}

export interface Answer {
  text: string;
  finish: "stop" | "length";
  /** The numbers of tokens, if they can be counted. */
  input?: number;
  output?: number;
}

/** The longest average length of a token in characters: a longer text certainly exceeds the token limit. */
const LONGEST_TOKEN = 8;
/** The maximum number of models in a message. */
const NAMED = 8;

/** Sends a request to a model. Throws errors whose messages say what to do; after any but an internal error the server sends no more requests. */
export async function answer(asked: Asked, token: vscode.CancellationToken): Promise<Answer> {
  const model = await choose(asked.model);
  const stop = new vscode.CancellationTokenSource();
  const stopping = token.onCancellationRequested(() => stop.cancel());
  try {
    return await complete(model, asked, stop);
  } catch (error) {
    throw token.isCancellationRequested ? new ResponseError(LSPErrorCodes.RequestCancelled, "stopped") : refusal(error, model);
  } finally {
    stopping.dispose();
    stop.dispose();
  }
}

async function choose(name: string | null): Promise<vscode.LanguageModelChat> {
  const models = await vscode.lm.selectChatModels();
  const chosen = name === null ? models[0] : (models.find(({ id }) => id === name) ?? models.find(({ family }) => family === name));
  if (chosen) return chosen;
  const names = [...new Set(models.map(({ family }) => family))];
  const some = names.slice(0, NAMED).join(", ") + (names.length > NAMED ? ", …" : "");
  throw lasting(
    models.length === 0
      ? "VS Code has no language model: install an extension that brings some, such as GitHub Copilot, and sign in"
      : `VS Code has no language model \`${name}\`: set \`model.name\` to one of ${some}`,
  );
}

async function complete(model: vscode.LanguageModelChat, asked: Asked, stop: vscode.CancellationTokenSource): Promise<Answer> {
  const { User, Assistant } = vscode.LanguageModelChatMessage;
  const said = asked.messages.map(({ role, text }) => (role === "user" ? User(text) : Assistant(text)));
  // The API for extensions has no system messages.
  const messages = asked.system === "" ? said : [User(asked.system), ...said];
  const modelOptions: Record<string, unknown> = { max_tokens: asked.maxTokens };
  if (asked.temperature !== null) modelOptions["temperature"] = asked.temperature;
  if (asked.stop.length > 0) modelOptions["stop"] = asked.stop;
  const justification = "Warpsmith asks for faster versions of the kernel that you optimize.";
  const response = await model.sendRequest(messages, { justification, modelOptions }, stop.token);
  let text = "";
  let finish: Answer["finish"] = "stop";
  for await (const piece of response.text) {
    text += piece;
    if (text.length > asked.maxTokens * LONGEST_TOKEN) {
      finish = "length";
      break;
    }
  }
  const texts = [asked.system, ...asked.messages.map((message) => message.text)];
  const counts = await count(model, [...texts, text], stop.token);
  // The rest of a reply beyond the limit is not needed.
  if (finish === "length") stop.cancel();
  if (counts === undefined) return { text, finish };
  const output = counts.pop() ?? 0;
  return { text, finish, input: counts.reduce((sum, tokens) => sum + tokens, 0), output };
}

async function count(model: vscode.LanguageModelChat, texts: string[], token: vscode.CancellationToken): Promise<number[] | undefined> {
  try {
    return await Promise.all(texts.map(async (text) => model.countTokens(text, token)));
  } catch {
    return undefined;
  }
}

function lasting(message: string): ResponseError<void> {
  return new ResponseError(LSPErrorCodes.RequestFailed, message);
}

/** The error for a model that did not answer. */
function refusal(error: unknown, model: vscode.LanguageModelChat): ResponseError<void> {
  const why = error instanceof Error ? error.message : String(error);
  const said = why === "" ? "" : ` (${why})`;
  switch (error instanceof vscode.LanguageModelError ? error.code : undefined) {
    case vscode.LanguageModelError.NoPermissions.name:
      return lasting(`Warpsmith may not use ${model.name}${said}: allow it by the command "Manage Language Model Access"`);
    case vscode.LanguageModelError.Blocked.name:
      return lasting(`${model.name} takes no more requests for now${said}: try again later, or set another \`model.name\``);
    case vscode.LanguageModelError.NotFound.name:
      return lasting(`${model.name} is not there any more${said}: set another \`model.name\``);
    default:
      return new ResponseError(ErrorCodes.InternalError, `${model.name} did not answer${said}: try again, or set another \`model.name\``);
  }
}
