# again COMMAND...: tries a command that asks the network up to four times, with pauses in which a registry may come back. npm
# may fail without a word of why; the end of its log has it. Sourced by the scripts that bring editors to a machine.
again() {
  local pause log
  for pause in 5 20 60; do
    "$@" && return
    log=$(ls -t ~/.npm/_logs/*.log 2> /dev/null | head -n 1)
    [ "$1" != npm ] || [ -z "$log" ] || tail -n 15 "$log" >&2
    echo "again in $pause s: $*" >&2
    sleep "$pause"
  done
  "$@"
}
