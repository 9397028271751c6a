// The entry point in the extension host; WARPSMITH_SUITE selects the suite.
import * as elsewhere from "./elsewhere";
import * as folders from "./folders";
import * as models from "./models";
import * as optimizing from "./optimizing";
import * as trusted from "./trusted";
import * as untrusted from "./untrusted";

const SUITES: Record<string, { run(): Promise<void> }> = { elsewhere, folders, models, optimizing, trusted, untrusted };

export async function run(): Promise<void> {
  const suite = SUITES[process.env["WARPSMITH_SUITE"] ?? ""];
  if (!suite) throw new Error("WARPSMITH_SUITE names no suite");
  await suite.run();
  console.log("TEST done");
}
