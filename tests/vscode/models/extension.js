// Language models that an extension provides to VS Code: `writer` rewrites the kernel of `project/scale.py`, with larger blocks each
// time; `sleeper` never answers; `broken` fails in the middle; `endless` does not end. `stand-in.seen` contains their requests.
const vscode = require("vscode");

const written = (block) => `Diagnosis: the blocks are small.

\`\`\`python
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(x_ptr + at, x * 2, mask=at < n)


def double(x):
    scale[(triton.cdiv(x.numel(), ${block}),)](x, x.numel(), BLOCK=${block})
\`\`\`
`;

exports.activate = (context) => {
  const seen = [];
  let block = 16;
  const reply = {
    writer: async (say) => say(written((block *= 2))),
    sleeper: async (_, token, asked) => {
      await new Promise((resolve) => token.onCancellationRequested(resolve));
      asked.cancelled = true;
    },
    broken: async (say) => {
      say("Diag");
      throw new Error("the line is cut");
    },
    endless: async (say, token) => {
      while (!token.isCancellationRequested) {
        say("and so on, ".repeat(100));
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    },
  };
  const about = (id) => ({
    id, name: id, family: `${id}-family`, version: "1", maxInputTokens: 100_000, maxOutputTokens: 10_000, capabilities: {},
  });
  const provider = {
    provideLanguageModelChatInformation: () => Object.keys(reply).map(about),
    provideLanguageModelChatResponse: async ({ id }, messages, { modelOptions }, progress, token) => {
      const texts = messages.map(({ role, content }) => [role, content.map(({ value }) => value).join("")]);
      const asked = { id, texts, modelOptions, cancelled: false };
      seen.push(asked);
      await reply[id]((text) => progress.report(new vscode.LanguageModelTextPart(text)), token, asked);
    },
    provideTokenCount: async (_, text) => text.length,
  };
  context.subscriptions.push(
    vscode.lm.registerLanguageModelChatProvider("stand-in", provider),
    vscode.commands.registerCommand("stand-in.seen", () => seen),
  );
};
