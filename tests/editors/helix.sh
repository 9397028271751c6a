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

# is_shown WORDS. No pipe: what writes into one that `grep -q` has left fails.
is_shown() { [[ $(screen) == *"$1"* ]]; }

fail() {
  echo "FAIL $1 in:" >&2
  screen >&2
  exit 1
}

# wait_for WORDS: until they are on the screen.
wait_for() {
  for _ in $(seq 600); do
    if is_shown "$1"; then return; fi
    sleep 0.1
  done
  fail "no \"$1\""
}

# leave WORDS: closes what shows them. Keys come only after it is gone: read together with Escape, they are Alt and a key.
leave() {
  press Escape
  for _ in $(seq 600); do
    if ! is_shown "$1"; then return; fi
    sleep 0.1
  done
  fail "still \"$1\""
}

tmux new-session -d -s helix -x 160 -y 50 "$prefix/hx" "$file"
wait_for 'def scale'
# The status line counts the findings.
wait_for '● 1'

# The list of findings.
press Space d
wait_for 'severity'
wait_for L002
echo "ok $(screen | grep -F L002)"
leave 'severity'

press / 'float32\(n' Enter
wait_for ' 8:34'
press Space k
wait_for dtype-called
echo "ok page of the rule"
leave dtype-called

press Space a
wait_for 'Ignore L002'
echo "ok $(screen | grep -F 'tl.cast')"
press Enter
wait_for 'factor = tl.cast(n, tl.float32)'
press ':w' Enter
for _ in $(seq 600); do
  if grep -qF 'tl.cast(n, tl.float32)' "$file"; then break; fi
  sleep 0.1
done
press ':q!' Enter
echo "ok done"
