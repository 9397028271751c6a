// with-vscode.sh … measured.js FOLDER SHOTS: a search as it was on a GPU, from its finding to the edit that was measured there, in TITLE.
// The server is a fake one that replays a recorded session.
const { click, command, hover, inPage, openFile, optimize, say, session, soon, tab, until } = require("./workbench");
const [, , folder, shots] = process.argv;
const [FILE, NAME] = ["layer_norm.py", "layer_norm_kernel"];

/** Waits until animations of messages and scroll bars have ended, before a picture that is kept. */
const still = async (page) => {
  if (process.env.PICTURES) await page.waitForTimeout(2000);
};

/** The findings during editing: a lens with the kernel's resources, and a diagnostic with its reason. */
async function found(page, shot) {
  await page.keyboard.press("Control+B");
  await page.waitForSelector(".part.sidebar", { state: "hidden" });
  await openFile(page, FILE);
  await page.waitForSelector(".squiggly-hint", { timeout: 120_000 });
  const isCompiled = () => soon((timeout) => page.waitForSelector(".codelens-decoration >> text=registers", { timeout }), 10_000);
  await click(page, ".codelens-decoration a >> text=resources on", isCompiled);
  await page.waitForSelector(".notification-list-item");
  const isClear = () => soon((timeout) => page.waitForSelector(".notification-list-item", { state: "detached", timeout }));
  await command(page, "Notifications: Clear All Notifications", isClear);
  // A hint underlines only the first two characters of its range.
  await hover(page, 26, 14, "has loaded the same");
  await still(page);
  await shot("1-found", "finding");
  await page.keyboard.press("Escape");
  say("found");
}

async function searched(page, shot) {
  await optimize(page, true, { name: NAME, line: 12, column: 10, timeout: 60_000 });
  const isOpen = () => soon((timeout) => page.waitForSelector(`.tab >> text=Search ${NAME}`, { timeout }), 10_000);
  await command(page, "Warpsmith: Show Search", isOpen);
  await inPage(page).locator("#headline >> text=confirming").waitFor({ timeout: 120_000 });
  const environment = await inPage(page).locator("#environment").textContent();
  if (!environment.includes("NVIDIA H200")) throw new Error(`the page names another device: ${environment}`);
  await shot("2-searched", "search");
  say("searched:", await inPage(page).locator("#numbers").textContent());
}

async function applied(page, shot) {
  const apply = await page.waitForSelector(".notification-list-item .monaco-button >> text=Apply", { timeout: 120_000 });
  await page.waitForSelector(".monaco-diff-editor .line-insert");
  const offer = await page.$eval(".notification-list-item-message", (message) => message.textContent);
  if (!offer.includes(process.env.TITLE)) throw new Error(`another offer than ${process.env.TITLE}: ${offer}`);
  await page.mouse.move(300, 785);
  await still(page);
  await shot("3-offered", "diff");
  say("offer:", offer);
  await apply.click();
  await page.waitForSelector(".monaco-diff-editor", { state: "detached" });
  await tab(page, FILE, ".dirty", 20_000);
  const save = async () => {
    await page.click(`.tab[data-resource-name="${FILE}"]`, { timeout: 5000 });
    await page.keyboard.press("Control+S");
  };
  await until("saving", page, save, () => soon((timeout) => tab(page, FILE, ":not(.dirty)", timeout)));
  await shot("4-saved");
  say("saved");
}

session(shots, folder, [found, searched, applied]);
