// with-vscode.sh … session.js FOLDER SHOTS: what a user does by mouse and keyboard in a folder with `mistakes.py` and
// `scale.py`, a simulated device and a Python with Triton. Pictures go to SHOTS.
const { open } = require("./browser");
const [, , folder, shots] = process.argv;

const began = Date.now();
const say = (...words) => console.log(`${((Date.now() - began) / 1000).toFixed(1)} s`, ...words);
const TAB_TEXT = ".editor-instance .view-lines .view-line";

/** Opens a file of the folder by the quick-open box. */
async function openFile(page, name) {
  await page.keyboard.press("Control+P");
  await page.waitForSelector(".quick-input-widget:not([style*='display: none']) input");
  await page.keyboard.type(name);
  await page.waitForSelector(`.quick-input-list .monaco-list-row[aria-label*="${name}"]`);
  await page.keyboard.press("Enter");
  await page.waitForSelector(`.tab.active[data-resource-name="${name}"]`);
}

async function command(page, title) {
  await page.keyboard.press("F1");
  await page.waitForSelector(".quick-input-widget:not([style*='display: none']) input");
  await page.keyboard.type(title);
  await page.waitForSelector(`.quick-input-list .monaco-list-row.focused[aria-label*="${title}"]`);
  await page.keyboard.press("Enter");
}

const lines = (page, words) =>
  page.waitForFunction(
    // The editor writes spaces that do not break.
    ([at, words]) => [...document.querySelectorAll(at)].some((line) => line.textContent.replace(/\u00a0/g, " ").includes(words)),
    [TAB_TEXT, words],
    { timeout: 60_000 },
  );

/** The line that launches the kernel of `scale.py`. */
async function launch(page) {
  const line = await page.waitForSelector(`${TAB_TEXT} >> text=/^\\s*scale\\[/`);
  return (await line.textContent()).replace(/\u00a0/g, " ");
}

async function goTo(page, line, column) {
  await page.keyboard.press("Control+G");
  await page.waitForSelector(".quick-input-widget:not([style*='display: none']) input");
  await page.keyboard.type(`${line}:${column}`);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".quick-input-widget", { state: "hidden" });
}

/** A mistake: underlined, explained, mended by the keyboard. */
async function mistakes(page, shot) {
  await openFile(page, "mistakes.py");
  await page.waitForSelector(".squiggly-error", { timeout: 60_000 });
  say("squiggle");
  await page.click(`${TAB_TEXT} >> text=cidv`);
  await goTo(page, 15, 27);
  await page.keyboard.press("Control+K");
  await page.keyboard.press("Control+I");
  await page.waitForSelector(".monaco-hover:not(.hidden) >> text=unknown-member", { timeout: 20_000 });
  await shot("1-hover");
  await page.keyboard.press("Escape");
  for (let press = 0; ; press += 1) {
    // A press while the editor still asks for actions is lost.
    await page.keyboard.press("Control+.");
    const menu = page.waitForSelector(".action-widget .monaco-list-row", { timeout: 2000 });
    if (await menu.then(() => true, () => false)) break;
    if (press === 9) throw new Error("no menu of actions");
    await page.keyboard.press("Escape");
  }
  const actions = await page.$$eval(".action-widget .monaco-list-row", (rows) => rows.map((row) => row.textContent));
  say("actions:", actions.join(" | "));
  await shot("2-actions");
  await page.keyboard.press("Enter");
  await lines(page, "tl.cdiv(n_cols, BLOCK)");
  say("mended");
}

/** What the compiler says: a lens above the kernel, its texts beside the source. */
async function lens(page, shot) {
  await openFile(page, "scale.py");
  await page.waitForSelector(".codelens-decoration >> text=resources on", { timeout: 120_000 });
  await page.keyboard.press("Control+Home");
  await page.keyboard.type("# A kernel.\n");
  await page.keyboard.press("Control+S");
  await page.waitForSelector(".codelens-decoration >> text=registers", { timeout: 120_000 });
  const words = await page.$$eval(".codelens-decoration a", (parts) => parts.map((part) => part.textContent));
  say("lens:", words.join(" | "));
  await page.click(".codelens-decoration a >> text=PTX");
  await page.waitForSelector('.tab[data-resource-name="scale.ptx"]', { timeout: 60_000 });
  await page.waitForSelector('.tab.active[data-resource-name="scale.py"]');
  await lines(page, ".visible .entry");
  say("PTX beside");
  await shot("3-lens-and-ptx");
}

/** A search: progress, a diff, applied, taken back. */
async function search(page, shot) {
  const before = await launch(page);
  await goTo(page, 9, 20);
  await command(page, "Warpsmith: Optimize Kernel");
  await page.waitForSelector(".statusbar-item >> text=Optimizing scale", { timeout: 60_000 });
  const run = page.waitForSelector('.notification-list-item .monaco-button >> text=Run it once', { timeout: 60_000 });
  await (await run).click();
  await page.waitForSelector(".statusbar-item >> text=/Optimizing scale \\d+ s \\(\\d+ %\\)/", { timeout: 60_000 });
  await shot("4-searching");
  const apply = await page.waitForSelector(".notification-list-item .monaco-button >> text=Apply", { timeout: 200_000 });
  await page.waitForSelector(".monaco-diff-editor .line-insert");
  say("offer:", await page.$eval(".notification-list-item-message", (message) => message.textContent));
  await page.waitForSelector('.editor-actions [aria-label^="Apply This Change"]');
  await shot("5-diff");
  await apply.click();
  await page.waitForSelector(".monaco-diff-editor", { state: "detached" });
  await page.waitForSelector('.tab.active[data-resource-name="scale.py"].dirty');
  const after = await launch(page);
  if (after === before) throw new Error(`nothing was applied: ${after}`);
  await shot("6-applied");
  say("applied:", after);
  await goTo(page, 9, 20);
  await page.keyboard.press("Control+Z");
  await lines(page, before);
  say("taken back");
}

/** What the search did, as a page in the editor. */
async function report(page, shot) {
  await command(page, "Warpsmith: Show Report of the Last Search");
  const frame = page.frameLocator("iframe.webview").frameLocator("iframe");
  await frame.locator("h1 >> text=scale").waitFor({ timeout: 60_000 });
  await shot("7-report");
  say("report");
}

/** How all is, from the status bar: the server, the compiler and why nothing can be optimized. */
async function status(page, shot) {
  await openFile(page, "mistakes.py");
  await goTo(page, 15, 27);
  await page.click(".statusbar-item >> text=Warpsmith");
  const rows = ".quick-input-list .monaco-list-row";
  await page.waitForSelector(`${rows}[aria-label*="Compiler: "]`);
  await page.waitForSelector(`${rows}[aria-label*="Restart the server"]`);
  await shot("8-status");
  say("status:", (await page.$$eval(rows, (rows) => rows.map((row) => row.getAttribute("aria-label")))).join(" | "));
  await page.keyboard.press("Escape");
}

(async () => {
  const { browser, page, shot } = await open(shots);
  try {
    await page.goto(`${process.env.BASE}/?folder=${folder}`);
    await page.waitForSelector(".explorer-folders-view .monaco-list-row", { timeout: 60_000 });
    say("workbench");
    await mistakes(page, shot);
    await lens(page, shot);
    await search(page, shot);
    await status(page, shot);
    // Last: the page of the report takes the keyboard.
    await report(page, shot);
    say("done");
  } catch (error) {
    say("FAILED", error.message);
    await shot("failed");
    process.exitCode = 1;
  }
  await browser.close();
})();
