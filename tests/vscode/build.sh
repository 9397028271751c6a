#!/usr/bin/env bash
# build.sh BUILD SERVER: checks the types of the extension for VS Code, builds it and its tests, and packs it with the program
# SERVER, all in the folder BUILD: warpsmith.vsix, unpacked in extension/, test.js, and what stands in for other extensions:
# python.vsix for Python's, models.vsix for one with language models. Needs npm.
set -euo pipefail
build=$(realpath -m "$1")
server=$(realpath "$2")
root=$(realpath "$(dirname "$0")/../..")
. "$root/tests/again.sh"
source=$root/editors/vscode
mkdir -p "$build/source"
cd "$build/source"

rm -rf src webview test media dist server
cp -r "$source"/{src,webview,test,media,package.json,package-lock.json,tsconfig.json,build.mjs,.vscodeignore} .
cp "$source"/{README.md,CHANGELOG.md,LICENSE.txt} "$root"/LICENSE-* .
# Installed again only when other packages are wanted.
if ! cmp -s package-lock.json node_modules/.installed; then
  again npm ci --no-audit --no-fund --loglevel=error
  cp package-lock.json node_modules/.installed
fi
npm run --silent check
npm run --silent build -- --tests
mv dist/test.js ..
mkdir server
# What is stripped already stays as it is.
if readelf --section-headers --wide "$server" | grep -q '\.symtab'; then strip -o server/warpsmith "$server"; else cp "$server" server/warpsmith; fi
npm run --silent package -- --out "$build/warpsmith.vsix"

rm -rf "$build/extension" "$build/unpacked"
unzip -q "$build/warpsmith.vsix" 'extension/*' -d "$build/unpacked"
mv "$build/unpacked/extension" "$build/extension"

vsce=$PWD/node_modules/.bin/vsce
for name in python models; do
  cd "$root/tests/vscode/$name"
  "$vsce" package --no-dependencies --allow-missing-repository --skip-license --out "$build/$name.vsix"
done
