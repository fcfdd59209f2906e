"""What the cargo runner runs in the box: three shell scripts that need nothing but cargo and POSIX tools.

cargo builds and starts every test program itself, with the environment and in the folder that tests expect; it is told
to start them through RUN_PROGRAM. libtest writes results into a log file of its own, where no output of tests can be
in between. What a program left open when it ended (a test that exits, aborts, or overflows the stack ends all the
others) is run again, each test in a process of its own, so that one test costs no other its result.
"""

MAIN = r"""here=$1 report=$2 token=$3
top=$(pwd -P)
results=$here/results
mkdir -p "$results" && chmod +x "$here/rustdoc.sh" || exit
host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z.-' 'A-Z__')
export "CARGO_TARGET_${host}_RUNNER=/bin/sh $here/program.sh" RUSTDOC="$here/rustdoc.sh"
number=0

# One call of cargo: a label, then its arguments. What it runs leaves its files in a folder of the call's own.
call() {
    number=$((number + 1))
    mkdir -p "$results/$number"
    printf %s "$1" >"$results/$number/label"
    shift
    EVALPIPE_RESULTS=$results/$number cargo test "$@" </dev/null \
        >"$results/$number/stream" 2>"$results/$number/errors"
    status=$?
    echo "$status" >"$results/$number/status"
    return "$status"
}

# Of cargo's messages only those that say which program belongs to which target, and which target does not compile.
messages() {
    awk '/^[{]"reason":"compiler-artifact"/ && /"executable":"/ { print; next }
        /^[{]"reason":"compiler-message"/ && /"level":"error"/ && length($0) < 50000 && count++ < 100' "$1"
}

show() {
    printf '\n%s file %s\n' "$token" "${2#"$results/"}"
    tail -c "$1" "$2"
}

join() {
    for folder in "$results"/*; do
        [ -d "$folder" ] || continue
        messages "$folder/stream" >"$folder/messages"
        show 20000000 "$folder/messages"
        for name in label status errors; do show 100000 "$folder/$name"; done
        for file in "$folder"/*/*; do
            case $file in
                */output) show 400000 "$file" ;;
                *) [ ! -f "$file" ] || show 20000000 "$file" ;;
            esac
        done
    done
    printf '\n%s end 0\n' "$token"
}
"""

RUN_PROGRAM = r"""program=$1
shift
here=${0%/*}
folder=$(mktemp -d "$EVALPIPE_RESULTS/run.XXXXXX")
# Tests may call cargo themselves.
for name in $(env | sed -n 's/^\(CARGO_TARGET_[A-Z0-9_]*_RUNNER\)=.*/\1/p'); do unset "$name"; done
unset EVALPIPE_RESULTS RUSTDOC
printf %s "$program" >"$folder/program"
printf %s "$CARGO_PKG_NAME" >"$folder/package"
target=${program##*/}
if grep -Fxq "$CARGO_PKG_NAME/${target%-*}" "$here/no-harness"; then
    echo 1 >"$folder/no-harness"
    exit 0
fi
"$program" "$@" --list --format terse </dev/null 2>/dev/null >"$folder/list"
log=
"$program" --help 2>/dev/null | grep -q -e --logfile && log=$folder/log
"$program" "$@" ${log:+--logfile "$log"} </dev/null >"$folder/output" 2>&1
status=$?
echo "$status" >"$folder/status"
if [ -n "$log" ]; then
    # Where the program ended, the last line may have no end.
    touch "$log" && [ -z "$(tail -c 1 "$log")" ] || echo >>"$log"
    awk 'FILENAME == ARGV[1] { done[$NF] = 1; next } sub(/: test$/, "") && !($0 in done)' "$log" "$folder/list" |
        while IFS= read -r name; do
            "$program" "$@" --exact "$name" --logfile "$folder/again" </dev/null >>"$folder/output" 2>&1
            cat "$folder/again" >>"$log" 2>/dev/null
            rm -f "$folder/again"
        done
fi
exit "$status"
"""

RUSTDOC = r"""#!/bin/sh
unset RUSTDOC
is_test= skip=
for argument do
    shift
    [ "$argument" != --test ] || is_test=1
    if [ -n "$skip" ]; then
        skip=
        continue
    fi
    # Documentation tests are started by rustdoc itself, which judges each by its own process.
    case $argument in
        --test-runtool | --test-runtool-arg) skip=1; continue ;;
        --test-runtool=* | --test-runtool-arg=*) continue ;;
    esac
    set -- "$@" "$argument"
done
[ -n "$is_test" ] && [ -n "$EVALPIPE_RESULTS" ] || exec rustdoc "$@"
folder=$(mktemp -d "$EVALPIPE_RESULTS/doc.XXXXXX")
unset EVALPIPE_RESULTS
for name in $(env | sed -n 's/^\(CARGO_TARGET_[A-Z0-9_]*_RUNNER\)=.*/\1/p'); do unset "$name"; done
printf %s "$CARGO_PKG_NAME" >"$folder/package"
rustdoc "$@" </dev/null >"$folder/output" 2>"$folder/errors"
status=$?
echo "$status" >"$folder/status"
exit "$status"
"""
