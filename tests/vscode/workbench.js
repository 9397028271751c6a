// User actions in the workbench, repeated until they have worked: a busy machine is slow, and a key that is pressed
// before the editor is ready for it is lost.

const began = Date.now();
exports.say = (...words) => console.log(`${((Date.now() - began) / 1000).toFixed(1)} s`, ...words);

const BOX = ".quick-input-widget:not([style*='display: none'])";
const TEXT = ".editor-instance .view-lines .view-line";
exports.TEXT = TEXT;

const soon = (wait, timeout = 3000) => wait(timeout).then(() => true, () => false);

/** Repeats an action until `isDone`, which waits a little, returns that it has worked. */
async function until(what, page, act, isDone, tries = 20) {
  for (let round = 0; round < tries; round += 1) {
    await act(round).catch(() => undefined);
    if (await isDone()) return;
    // Closes any other box that has opened.
    await page.keyboard.press("Escape");
  }
  throw new Error(`in vain: ${what}`);
}
exports.until = until;

/** Moves the keyboard focus from a page to the workbench. */
async function awake(page, round) {
  if (round > 0) await page.click(".part.statusbar", { position: { x: 300, y: 10 }, timeout: 2000 });
}

/** Types into the palette, and presses Enter once the entry is focused; before, the list is that of an older text. */
async function pick(page, keys, words, entry) {
  await page.keyboard.press(keys);
  await page.waitForSelector(`${BOX} input`, { timeout: 3000 });
  await page.fill(`${BOX} input`, words, { timeout: 3000 });
  await page.waitForSelector(`${BOX} .monaco-list-row[aria-label*="${entry}"]`, { timeout: 5000 });
  const isFocused = () => soon((timeout) => page.waitForSelector(`${BOX} .monaco-list-row.focused[aria-label*="${entry}"]`, { timeout }), 500);
  // Entries that contain the words elsewhere may come first.
  for (let row = 0; !(await isFocused()) && row < 6; row += 1) await page.keyboard.press("ArrowDown");
  if (!(await isFocused())) throw new Error(`${entry} is not chosen`);
  await page.keyboard.press("Enter");
}

/** Opens a file of the folder, through the quick-open box. */
exports.openFile = (page, name) =>
  until(
    `opening ${name}`,
    page,
    async (round) => {
      await awake(page, round);
      await pick(page, "Control+P", name, name);
    },
    () => soon((timeout) => page.waitForSelector(`.tab.active[data-resource-name="${name}"]`, { timeout })),
  );

/** Runs a command of the palette until `isDone`; by default, until the palette has accepted it. */
exports.command = (page, title, isDone) => {
  let isTaken = false;
  const act = async (round) => {
    await awake(page, round);
    await pick(page, "F1", `>${title}`, title);
    isTaken = true;
  };
  return until(title, page, act, isDone ?? (async () => isTaken));
};

/** Moves the cursor in the open file. */
exports.goTo = (page, line, column) =>
  until(
    `going to ${line}:${column}`,
    page,
    async () => {
      await page.keyboard.press("Control+G");
      await page.waitForSelector(`${BOX} input`, { timeout: 3000 });
      await page.fill(`${BOX} input`, `:${line}:${column}`, { timeout: 3000 });
      await page.keyboard.press("Enter");
      await page.waitForSelector(".quick-input-widget", { state: "hidden", timeout: 3000 });
    },
    () => soon((timeout) => page.waitForSelector(`.statusbar-item >> text="Ln ${line}, Col ${column}"`, { timeout })),
  );

/** Waits for a line with a text in an editor. */
exports.lines = (page, words, timeout = 60_000) =>
  page.waitForFunction(
    // The editor uses non-breaking spaces.
    ([at, words]) => [...document.querySelectorAll(at)].some((line) => line.textContent.replace(/\u00a0/g, " ").includes(words)),
    [TEXT, words],
    { timeout },
  );

/** The line that launches the kernel of `scale.py`. */
exports.launch = async (page) => {
  const line = await page.waitForSelector(`${TEXT} >> text=/^\\s*scale\\[/`);
  return (await line.textContent()).replace(/\u00a0/g, " ");
};

/** That line, after an edit: the tab shows sooner that the file has changed than the lines do. */
exports.changedLaunch = async (page, before) => {
  for (const end = Date.now() + 10_000; Date.now() < end; await page.waitForTimeout(100)) {
    const after = await exports.launch(page);
    if (after !== before) return after;
  }
  throw new Error(`nothing was applied: ${before}`);
};

/** Clicks an element until it has worked. */
exports.click = (page, selector, isDone) => until(`click on ${selector}`, page, () => page.click(selector, { timeout: 5000 }), isDone);

/** Undoes the last edit of the open file. */
exports.undo = (page, words) =>
  until(
    `taking back to ${words}`,
    page,
    async () => {
      await exports.goTo(page, 9, 20);
      await page.keyboard.press("Control+Z");
    },
    () => soon((timeout) => exports.lines(page, words, timeout)),
  );

/** The content of a search page. */
exports.inPage = (page) => page.frameLocator("iframe.webview").frameLocator("iframe");

/** Shows the hover at a position until it contains a text. */
exports.hover = (page, line, column, words) => {
  const show = async () => {
    await exports.goTo(page, line, column);
    await page.keyboard.press("Control+K");
    await page.keyboard.press("Control+I");
  };
  return until("hover", page, show, () => soon((timeout) => page.waitForSelector(`.monaco-hover:not(.hidden) >> text=${words}`, { timeout })));
};

/** Optimizes a kernel, by default that of `scale.py`. For the first search, allows running the file to record a call. */
exports.optimize = async (page, isFirst, { name = "scale", line = 9, column = 20, timeout = 120_000 } = {}) => {
  await exports.goTo(page, line, column);
  const title = "Warpsmith: Optimize Kernel";
  const isSearching = () => soon((timeout) => page.waitForSelector(`.statusbar-item >> text=Optimizing ${name}`, { timeout }), 30_000);
  await exports.command(page, title, isSearching);
  if (!isFirst) return;
  const run = await page.waitForSelector(".notification-list-item .monaco-button >> text=Run it once", { timeout });
  await run.click();
};

exports.soon = soon;

/** Waits for a file's tab in a state, such as `.dirty`. */
exports.tab = (page, name, state, timeout) => page.waitForSelector(`.tab[data-resource-name="${name}"]${state}`, { timeout });

/** Runs a session; failures are reported with a picture. */
exports.session = async (shots, folder, steps) => {
  const { browser, page, shot } = await require("./browser").open(shots);
  try {
    await page.goto(`${process.env.BASE}/?folder=${folder}`);
    await page.waitForSelector(".explorer-folders-view .monaco-list-row", { timeout: 120_000 });
    exports.say("workbench");
    for (const step of steps) await step(page, shot);
    exports.say("done");
  } catch (error) {
    exports.say("FAILED", error.stack);
    await shot("failed");
    process.exitCode = 1;
  }
  await browser.close();
};
