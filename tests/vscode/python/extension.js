// A fake of the Python extension's published API for selected environments. The environment of a folder
// is in the folder's file `selected-python`.
const fs = require("node:fs");
const path = require("node:path");
const vscode = require("vscode");

exports.activate = () => {
  const changed = new vscode.EventEmitter();
  const selected = (folder) => {
    const file = folder && path.join(folder.fsPath, "selected-python");
    return file && fs.existsSync(file) ? fs.readFileSync(file, "utf8").trim() : "";
  };
  vscode.commands.registerCommand("python.changed", () => changed.fire({}));
  return {
    environments: {
      getActiveEnvironmentPath: (folder) => ({ id: selected(folder), path: selected(folder) }),
      resolveEnvironment: async ({ path }) => (path ? { executable: { uri: vscode.Uri.file(path) } } : undefined),
      onDidChangeActiveEnvironmentPath: changed.event,
    },
  };
};
