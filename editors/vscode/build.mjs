// Bundles the extension into one file, the page of its panel into another, and with `--tests` its tests into a third.
import { build } from "esbuild";

const common = { bundle: true, platform: "node", target: "node20", format: "cjs", external: ["vscode"], logLevel: "warning" };
await build({ ...common, entryPoints: ["src/extension.ts"], outfile: "dist/extension.js", minify: true });
// The page of a search runs in a browser, without Node.
const browser = { platform: "browser", target: "es2022", format: "iife" };
await build({ ...common, ...browser, entryPoints: ["webview/main.ts"], outfile: "dist/search.js", minify: true });
if (process.argv.includes("--tests")) {
  await build({ ...common, entryPoints: ["test/index.ts"], outfile: "dist/test.js", sourcemap: "inline" });
}
