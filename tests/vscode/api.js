// with-vscode.sh … api.js FOLDER EXTENSION TESTS SHOTS: runs TESTS (its `run`) in the extension host, in a window with FOLDER
// (or a `.code-workspace` file) and the extension in the folder EXTENSION. What it says after "TEST " is printed.
const { open } = require("./browser");
const [, , folder, extension, tests, shots] = process.argv;
const LIMIT = 480_000;

(async () => {
  const { browser, page, shot } = await open(shots);
  const seen = [];
  let end;
  const ended = new Promise((resolve) => (end = resolve));
  // VS Code's web build calls these two.
  await page.exposeFunction("codeAutomationLog", (type, args) => {
    const line = `[${type}] ${args.join(" ")}`;
    seen.push(line);
    const at = line.indexOf("TEST ");
    if (at >= 0) console.log(line.slice(at + 5));
  });
  await page.exposeFunction("codeAutomationExit", (code) => end(code));
  const timer = setTimeout(() => end("too long"), LIMIT);
  const remote = (file) => `vscode-remote://${new URL(process.env.BASE).host}${file}`;
  const payload = [["extensionDevelopmentPath", remote(extension)], ["extensionTestsPath", remote(tests)]];
  const kind = folder.endsWith(".code-workspace") ? "workspace" : "folder";
  await page.goto(`${process.env.BASE}/?${kind}=${folder}&payload=${encodeURIComponent(JSON.stringify(payload))}`);
  const code = await ended;
  clearTimeout(timer);
  if (code !== 0) {
    console.log(`ended with ${code}\n${seen.join("\n")}`);
    await shot("failed");
  }
  await browser.close();
  process.exit(code === 0 ? 0 : 1);
})();
