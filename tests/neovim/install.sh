#!/usr/bin/env bash
# install.sh PREFIX SUITE: unpacks Neovim of a Debian suite (trixie: 0.10, forky: 0.12 and later) with its own C library
# into PREFIX. Needs apt, dpkg-deb and Debian's mirrors; needs no root and changes nothing outside of PREFIX.
# Start it as PREFIX/nvim. PREFIX cannot be moved afterwards.
set -euo pipefail
suite=$2
prefix=$(realpath -m "$1")
[ "$(dpkg --print-architecture)" = amd64 ] || { echo "only for amd64" >&2; exit 1; }

rm -rf "$prefix"
apt=$prefix/.apt
mkdir -p "$apt"/{etc/apt.conf.d,etc/preferences.d,etc/sources.list.d,lists/partial,archives/partial}
: > "$apt/status"
# The mirror that this machine uses already.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null \
  | sed -nE 's/^(URIs:|deb( \[[^]]*\])?) *(https?:[^ ]*debian[^ ]*).*/\3/p' | grep -v security | head -n 1 || true)
[ -n "$mirror" ] || { echo "no Debian mirror in /etc/apt" >&2; exit 1; }
cat > "$apt/etc/sources.list.d/debian.sources" <<SOURCES
Types: deb
URIs: $mirror
Suites: $suite
Components: main
Architectures: amd64
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
SOURCES
options=(
  -o Dir::Etc="$apt/etc" -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$apt/etc/sources.list.d"
  -o Dir::State="$apt" -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status"
  -o Dir::Cache="$apt" -o Dir::Cache::archives="$apt/archives"
  -o APT::Install-Recommends=false -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=3
  -o Debug::NoLocking=true
)
apt-get "${options[@]}" -q update
apt-get "${options[@]}" -qq -y --download-only install neovim patchelf
for package in "$apt"/archives/*.deb; do dpkg-deb -x "$package" "$prefix"; done
rm -rf "$apt"

# The base system's C library is older than these programs need: they use the one beside them.
loader=$prefix/usr/lib64/ld-linux-x86-64.so.2
libraries=$prefix/usr/lib/x86_64-linux-gnu
"$loader" --library-path "$libraries" "$prefix/usr/bin/patchelf" \
  --set-interpreter "$loader" --force-rpath --set-rpath "$libraries" "$prefix/usr/bin/nvim"
cat > "$prefix/nvim" <<'START'
#!/bin/sh
prefix=$(dirname "$(readlink -f "$0")")
VIMRUNTIME="$prefix/usr/share/nvim/runtime" exec "$prefix/usr/bin/nvim" "$@"
START
chmod +x "$prefix/nvim"
"$prefix/nvim" --version | head -n 1
touch "$prefix/complete"
