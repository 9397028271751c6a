// The extension as one file, and with `--tests` its tests as another.
import { build } from "esbuild";

const common = { bundle: true, platform: "node", target: "node20", format: "cjs", external: ["vscode"], logLevel: "warning" };
await build({ ...common, entryPoints: ["src/extension.ts"], outfile: "dist/extension.js", minify: true });
if (process.argv.includes("--tests")) {
  await build({ ...common, entryPoints: ["test/index.ts"], outfile: "dist/test.js", sourcemap: "inline" });
}
