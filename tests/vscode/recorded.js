// with-vscode.sh … recorded.js FOLDER SHOTS: a session with `layer_norm.py`, from its finding to a saved faster kernel.
// The server records the session. With a simulated device.
const { click, command, hover, inPage, openFile, optimize, say, session, soon, tab, until } = require("./workbench");
const [, , folder, shots] = process.argv;
const [FILE, NAME] = ["layer_norm.py", "layer_norm_kernel"];

async function looked(page, shot) {
  await openFile(page, FILE);
  await page.waitForSelector(".squiggly-hint", { timeout: 120_000 });
  await hover(page, 12, 10, "Constexpr parameters");
  await page.keyboard.press("Escape");
  await page.waitForSelector(".codelens-decoration >> text=resources on", { timeout: 120_000 });
  const isCompiled = () => soon((timeout) => page.waitForSelector(".codelens-decoration >> text=registers", { timeout }), 30_000);
  await click(page, ".codelens-decoration a >> text=resources on", isCompiled);
  await shot("1-looked");
  say("looked at");
}

async function searched(page, shot) {
  await optimize(page, true, { name: NAME, line: 12, column: 10 });
  const isOpen = () => soon((timeout) => page.waitForSelector(`.tab >> text=Search ${NAME}`, { timeout }), 10_000);
  await command(page, "Warpsmith: Show Search", isOpen);
  const candidate = inPage(page).locator("[role=treeitem][data-id='2']");
  await candidate.waitFor({ timeout: 120_000 });
  await until("a candidate", page, () => candidate.click({ timeout: 3000 }), () => soon((timeout) => inPage(page).locator("#detail-diff .add").first().waitFor({ timeout })));
  await shot("2-searching");
  say("candidate:", await inPage(page).locator("#detail-title").textContent());
}

async function applied(page, shot) {
  const apply = await page.waitForSelector(".notification-list-item .monaco-button >> text=Apply", { timeout: 200_000 });
  await page.waitForSelector(".monaco-diff-editor .line-insert");
  say("offer:", await page.$eval(".notification-list-item-message", (message) => message.textContent));
  await shot("3-offered");
  await apply.click();
  await page.waitForSelector(".monaco-diff-editor", { state: "detached" });
  await tab(page, FILE, ".dirty", 20_000);
  const save = async () => {
    await click(page, `.tab[data-resource-name="${FILE}"]`, () => soon((timeout) => tab(page, FILE, ".active", timeout)));
    await page.keyboard.press("Control+S");
  };
  await until("saving", page, save, () => soon((timeout) => tab(page, FILE, ":not(.dirty)", timeout)));
  await shot("4-saved");
  say("saved");
}

session(shots, folder, [looked, searched, applied]);
