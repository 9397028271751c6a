#!/usr/bin/env bash
# helix.sh PREFIX FILE: opens FILE in a Helix in a terminal of its own; looks at its finding and the rule's page, and takes the fix.
set -euo pipefail
prefix=$1
file=$2
export TMUX_TMPDIR=$XDG_STATE_HOME LC_ALL=C.UTF-8
tmux() { "$prefix/tmux" -L helix -f /dev/null "$@"; }
screen() { tmux capture-pane -p -t helix; }
press() { tmux send-keys -t helix "$@"; }
trap 'tmux kill-server 2>/dev/null || true' EXIT

# wait_for WORDS: until they are on the screen.
wait_for() {
  for _ in $(seq 300); do
    if screen | grep -qF -- "$1"; then return; fi
    sleep 0.1
  done
  echo "FAIL no \"$1\" in:" >&2
  screen >&2
  exit 1
}

tmux new-session -d -s helix -x 160 -y 50 "$prefix/hx" "$file"
wait_for 'def scale'

# The list of findings.
for _ in $(seq 30); do
  press Escape Space d
  sleep 0.5
  if screen | grep -qF L002; then break; fi
done
wait_for L002
echo "ok $(screen | grep -m 1 -F L002)"
press Escape

press / 'float32\(n' Enter
press Space k
wait_for dtype-called
echo "ok page of the rule"
press Escape

press Space a
wait_for 'Ignore L002'
echo "ok $(screen | grep -m 1 -F 'tl.cast')"
press Enter
wait_for 'factor = tl.cast(n, tl.float32)'
press ':w' Enter
for _ in $(seq 100); do
  if grep -qF 'tl.cast(n, tl.float32)' "$file"; then break; fi
  sleep 0.1
done
press ':q!' Enter
echo "ok done"
