// with-vscode.sh … panel.js FOLDER SHOTS: a search that is drawn while it runs, by mouse and keyboard: stopped, resumed,
// applied and undone, and still there after a reload of the window. With a simulated device.
const { changedLaunch, click, command, inPage, launch, openFile, optimize, say, session, soon, undo, until } = require("./workbench");
const [, , folder, shots] = process.argv;

const CANDIDATE = '[role=treeitem]:not([data-id="0"]):not([data-id="1"])';

/** Waits until `count` candidates are drawn, and returns their number. */
async function candidates(page, count, timeout = 120_000) {
  await inPage(page).locator(CANDIDATE).nth(count - 1).waitFor({ state: "attached", timeout });
  return inPage(page).locator(CANDIDATE).count();
}

const enabled = (page, button) => (timeout) => inPage(page).locator(`button:enabled >> text="${button}"`).waitFor({ timeout });
const press = (page, button, isDone) =>
  until(button, page, () => inPage(page).locator(`button >> text="${button}"`).click({ timeout: 3000 }), isDone);
const headline = (page) => inPage(page).locator("#headline").textContent();

let before;

async function drawn(page, shot) {
  await openFile(page, "scale.py");
  before = await launch(page);
  await optimize(page, true);
  const isOpen = () => soon((timeout) => page.waitForSelector(".tab >> text=Search scale", { timeout }), 10_000);
  await command(page, "Warpsmith: Show Search", isOpen);
  const early = await candidates(page, 2);
  await inPage(page).locator("#curve path.best").waitFor({ state: "attached" });
  const later = await candidates(page, early + 2);
  say(`drawn: ${early} candidates, then ${later}`);
  const environment = await inPage(page).locator("#environment").textContent();
  if (!environment.includes("simulated")) throw new Error(`the page does not say that the device is simulated: ${environment}`);
  await shot("1-drawn");
}

/** A candidate is shown by a click and by keys. */
async function looked(page, shot) {
  const diff = inPage(page).locator("#detail-diff .add");
  const isShown = () => soon((timeout) => diff.first().waitFor({ timeout }));
  await until("a candidate", page, () => inPage(page).locator(CANDIDATE).first().click({ timeout: 3000 }), isShown);
  const first = await inPage(page).locator("#detail-title").textContent();
  say("clicked:", first, "|", (await diff.first().textContent()).trim());
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  const isOther = async () => (await inPage(page).locator("#detail-title").textContent()) !== first;
  await until("another candidate by the keyboard", page, () => page.waitForTimeout(300), isOther);
  const focused = inPage(page).locator("[role=treeitem]:focus");
  say("by keyboard:", await focused.getAttribute("aria-label"), "at level", await focused.getAttribute("aria-level"));
  await shot("2-candidate");
}

async function stopped(page, shot) {
  await press(page, "Stop", () => soon(enabled(page, "Go On"), 10_000));
  await page.waitForSelector(".statusbar-item >> text=Optimizing", { state: "detached" });
  say("stopped:", await headline(page));
  await shot("3-stopped");
}

/** The search is resumed and confirmed; its result is applied from the page and undone in the editor. */
async function applied(page, shot) {
  const known = await candidates(page, 2);
  await press(page, "Go On", () => soon(enabled(page, "Stop"), 20_000));
  await until("an offer", page, () => enabled(page, "Apply")(60_000), () => soon(enabled(page, "Apply"), 100), 4);
  say(`offered: ${await headline(page)}; ${known} candidates, now ${await candidates(page, known)}`);
  await page.waitForSelector(".monaco-diff-editor .line-insert");
  await inPage(page).locator("#change-diff .add").first().waitFor({ timeout: 30_000 });
  await shot("4-offered");
  await press(page, "Apply", () => soon((timeout) => page.waitForSelector('.tab[data-resource-name="scale.py"].dirty', { timeout }), 10_000));
  await page.waitForSelector(".monaco-diff-editor", { state: "detached" });
  const after = await changedLaunch(page, before);
  say("applied:", after);
  await shot("5-applied");
  await click(page, '.tab[data-resource-name="scale.py"]', () => soon((timeout) => page.waitForSelector(".editor-group-container.active .tab.active[data-resource-name='scale.py']", { timeout })));
  await undo(page, before);
  await page.keyboard.press("Control+S");
  say("taken back");
}

async function loadedAgain(page, shot) {
  const count = await candidates(page, 2);
  await page.reload();
  await page.waitForSelector(".tab >> text=Search scale", { timeout: 120_000 });
  const again = await candidates(page, count);
  if (again !== count) throw new Error(`${count} candidates were drawn, and ${again} after the window was loaded again`);
  await inPage(page).locator("h2 >> text=Calls").waitFor({ timeout: 30_000 });
  say(`loaded again: ${again} candidates, ${await headline(page)}`);
  await shot("6-loaded-again");
}

session(shots, folder, [drawn, looked, stopped, applied, loadedAgain]);
