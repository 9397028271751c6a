// Opens a page with the workbench in the Chromium next to this VS Code.
const { promises: fs } = require("node:fs");
const path = require("node:path");
const { chromium } = require("playwright-core");

const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];

/** Opens a browser. `shots` is the folder for pictures; those with a second name are for the extension's README, too, where PICTURES is set. */
exports.open = async (shots) => {
  const executablePath = path.join(path.dirname(process.env.NODE_PATH), "chromium");
  const browser = await chromium.launch({ executablePath, headless: true, args: ARGUMENTS });
  // Animations are a tenth of the work in a browser without a GPU.
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce" });
  // The limit is long, since a busy machine is slow.
  page.setDefaultTimeout(120_000);
  const shot = async (name, picture) => {
    const file = path.join(shots, `${name}.png`);
    await page.screenshot({ path: file });
    if (picture && process.env.PICTURES) await fs.copyFile(file, path.join(process.env.PICTURES, `${picture}.png`));
  };
  return { browser, page, shot };
};
