#!/usr/bin/env bash
# debian.sh PREFIX SUITE PACKAGE...: unpacks packages of a Debian suite with all that they need, their own C library too, into
# PREFIX. Needs apt, dpkg-deb and Debian's mirrors; needs no root and changes nothing outside of PREFIX.
set -euo pipefail
prefix=$(realpath -m "$1")
suite=$2
shift 2
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
apt-get "${options[@]}" -qq -y --download-only install "$@"
for package in "$apt"/archives/*.deb; do dpkg-deb -x "$package" "$prefix"; done
rm -rf "$apt"
