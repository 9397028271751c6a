#!/usr/bin/env bash
# install.sh PREFIX helix|emacs|pytest: brings a client of the protocol to PREFIX, which is started as PREFIX/hx (and
# PREFIX/tmux), PREFIX/emacs or PREFIX/bin/pytest. Needs apt and Debian's mirrors, or Python with pip. Needs no root and changes
# nothing outside of PREFIX.
set -euo pipefail
prefix=$(realpath -m "$1")
here=$(dirname "$0")
. "$here/../again.sh"

# start NAME PROGRAM LINES: a script that starts a program with the C library beside it, after these lines.
start() {
  cat > "$prefix/$1" <<START
#!/bin/sh
prefix=\$(dirname "\$(readlink -f "\$0")")
$3
exec "\$prefix/usr/lib64/ld-linux-x86-64.so.2" --library-path "\$prefix/usr/lib/x86_64-linux-gnu" "\$prefix/$2" "\$@"
START
  chmod +x "$prefix/$1"
}

case $2 in
  helix)
    again bash "$here/debian.sh" "$prefix" forky hx tmux
    runtime=$(cd "$prefix" && find usr -type d -name runtime -path '*helix*' | head -n 1)
    start hx usr/bin/hx "export HELIX_RUNTIME=\"\$prefix/$runtime\""
    start tmux usr/bin/tmux ""
    "$prefix/hx" --version
    "$prefix/tmux" -V
    ;;
  emacs)
    again bash "$here/debian.sh" "$prefix" trixie emacs-nox
    version=$(ls "$prefix/usr/share/emacs" | grep -E '^[0-9.]+$')
    programs="\$prefix/usr/libexec/emacs/$version/x86_64-linux-gnu"
    start emacs usr/bin/emacs-nox "export EMACSLOADPATH=\$(find \"\$prefix/usr/share/emacs/$version/lisp\" -type d | paste -sd:)
export EMACSDATA=\"\$prefix/usr/share/emacs/$version/etc\" EMACSDOC=\"\$prefix/usr/share/emacs/$version/etc\"
export EMACSPATH=\"$programs\"
set -- --dump-file=\"\$(ls $programs/*.pdmp)\" \"\$@\""
    "$prefix/emacs" --version | head -n 1
    ;;
  pytest)
    rm -rf "$prefix"
    python3 -m venv "$prefix"
    again "$prefix/bin/pip" install --quiet --disable-pip-version-check pytest-lsp==1.0.1
    "$prefix/bin/pytest" --version
    ;;
esac
touch "$prefix/complete"
