#!/usr/bin/env bash
# install.sh PREFIX SUITE: unpacks Neovim of a Debian suite (trixie: 0.10, forky: 0.12 and later) with its own C library
# into PREFIX. Needs apt, dpkg-deb and Debian's mirrors; needs no root and changes nothing outside of PREFIX.
# Start it as PREFIX/nvim. PREFIX cannot be moved afterwards.
set -euo pipefail
prefix=$(realpath -m "$1")
. "$(dirname "$0")/../again.sh"
again bash "$(dirname "$0")/../editors/debian.sh" "$prefix" "$2" neovim patchelf

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
