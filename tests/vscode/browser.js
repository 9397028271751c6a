// A page with the workbench, in the Chromium beside this VS Code.
const path = require("node:path");
const { chromium } = require("playwright-core");

const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];

/** Opens a browser. `shots` is the folder for pictures. */
exports.open = async (shots) => {
  const executablePath = path.join(path.dirname(process.env.NODE_PATH), "chromium");
  const browser = await chromium.launch({ executablePath, headless: true, args: ARGUMENTS });
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  const shot = (name) => page.screenshot({ path: path.join(shots, `${name}.png`) });
  return { browser, page, shot };
};
