// with-vscode.sh … session.js FOLDER SHOTS: a session by mouse and keyboard in a folder with `mistakes.py` and
// `scale.py`, a simulated device and a Python with Triton. Pictures go to SHOTS.
const { changedLaunch, click, command, goTo, hover, launch, lines, openFile, optimize, say, session, soon, TEXT, undo, until } = require("./workbench");
const [, , folder, shots] = process.argv;

/** A mistake is underlined, explained, and fixed by the keyboard. */
async function mistakes(page, shot) {
  await openFile(page, "mistakes.py");
  await page.waitForSelector(".squiggly-error", { timeout: 120_000 });
  say("squiggle");
  await hover(page, 15, 27, "unknown-member");
  await shot("1-hover");
  await page.keyboard.press("Escape");
  // A key press is lost while the editor still requests actions.
  const isOpen = () => soon((timeout) => page.waitForSelector(".action-widget .monaco-list-row", { timeout }));
  await until("menu of actions", page, () => page.keyboard.press("Control+."), isOpen);
  const actions = await page.$$eval(".action-widget .monaco-list-row", (rows) => rows.map((row) => row.textContent));
  say("actions:", actions.join(" | "));
  await shot("2-actions");
  await page.keyboard.press("Enter");
  await lines(page, "tl.cdiv(n_cols, BLOCK)");
  say("mended");
}

/** The compiler's results: a lens above the kernel, and its output beside the source. */
async function lens(page, shot) {
  await openFile(page, "scale.py");
  await page.waitForSelector(".codelens-decoration >> text=resources on", { timeout: 120_000 });
  await goTo(page, 1, 1);
  await page.keyboard.type("# A kernel.\n");
  await page.keyboard.press("Control+S");
  await page.waitForSelector(".codelens-decoration >> text=registers", { timeout: 120_000 });
  const words = await page.$$eval(".codelens-decoration a", (parts) => parts.map((part) => part.textContent));
  say("lens:", words.join(" | "));
  const isBeside = () => soon((timeout) => page.waitForSelector('.tab[data-resource-name="scale.ptx"]', { timeout }), 20_000);
  await click(page, ".codelens-decoration a >> text=PTX", isBeside);
  await page.waitForSelector('.tab.active[data-resource-name="scale.py"]');
  await lines(page, ".visible .entry");
  say("PTX beside");
  await shot("3-lens-and-ptx");
}

/** A search: progress, a diff, an applied edit, and its undo. */
async function search(page, shot) {
  const before = await launch(page);
  await optimize(page, true);
  await page.waitForSelector(".statusbar-item >> text=/Optimizing scale \\d+\\/60 s/", { timeout: 120_000 });
  await shot("4-searching");
  const apply = await page.waitForSelector(".notification-list-item .monaco-button >> text=Apply", { timeout: 200_000 });
  await page.waitForSelector(".monaco-diff-editor .line-insert");
  say("offer:", await page.$eval(".notification-list-item-message", (message) => message.textContent));
  await page.waitForSelector('.editor-actions [aria-label^="Apply This Change"]');
  await shot("5-diff");
  await apply.click();
  await page.waitForSelector(".monaco-diff-editor", { state: "detached" });
  await page.waitForSelector('.tab.active[data-resource-name="scale.py"].dirty');
  const after = await changedLaunch(page, before);
  await shot("6-applied");
  say("applied:", after);
  await undo(page, before);
  say("taken back");
}

/** The status from the status bar: the server, the compiler, the device, and why nothing can be optimized. */
async function status(page, shot) {
  await openFile(page, "mistakes.py");
  await goTo(page, 15, 27);
  const rows = ".quick-input-list .monaco-list-row";
  const isShown = () => soon((timeout) => page.waitForSelector(`${rows}[aria-label*="Compiler: "]`, { timeout }));
  await click(page, ".statusbar-item >> text=Warpsmith", isShown);
  await page.waitForSelector(`${rows}[aria-label*="GPU: toy (simulated)"]`);
  await page.waitForSelector(`${rows}[aria-label*="Restart the server"]`);
  await shot("7-status");
  say("status:", (await page.$$eval(rows, (rows) => rows.map((row) => row.getAttribute("aria-label")))).join(" | "));
  await page.keyboard.press("Escape");
}

/** The report of the search as a page in the editor. */
async function report(page, shot) {
  await openFile(page, "scale.py");
  await goTo(page, 9, 20);
  const isBeside = () => soon((timeout) => page.waitForSelector(".tab.active >> text=Report scale-1", { timeout }), 10_000);
  await command(page, "Warpsmith: Show Report of the Last Search", isBeside);
  const frame = page.frameLocator("iframe.webview").frameLocator("iframe");
  await frame.locator("h1 >> text=scale").waitFor({ timeout: 60_000 });
  await shot("8-report");
  say("report");
}

session(shots, folder, [mistakes, lens, search, status, report]);
