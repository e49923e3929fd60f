#!/usr/bin/env bash
# KernelBench on a machine with a GPU that is lent for minutes: parts, each with its seconds.
#
#   KERNELBENCH=checkout STATE=folder OUT=folder bash benchmarks/on_gpu.sh smoke 150 capture 200 judge 180
#
# Everything is kept under STATE and goes on from there; what is to be committed is copied to OUT
# every few seconds, so that a command that is cut short loses nothing. In OUT, rules-h200.json and
# the like continue what STATE or benchmarks/results holds.
#
# parts     tests    what only a GPU can show of the judge (pytest -m triton, the files in TESTS)
#           smoke    four tasks with four judges side by side, 150 s or more; all ends here where the
#                    judges themselves fail
#           contexts how long 1, 4 and 12 processes take to open a context side by side, 90 s
#           capture  torch's compiler, asked about every task that has no verdict yet
#           ahead    the same for so many seconds, and then BESIDE at a time while the next parts run:
#                    45 s are enough for the first ones to be judged
#           judge    the rules, torch.compile's defaults and the reference itself on whatever is
#                    captured; benchmarks.rules_bench makes a bench's tables of it, at home. What
#                    the time cuts short goes on in a later call, see RUNS
#           both     the same, and what is not captured yet is captured beside it, BESIDE at a time
#           references eager against itself, one after the other, on whatever has not passed yet
#           autotune torch.compile's max-autotune beside eager, ten tasks per level
#           curve    forty evaluations on the same ten; a task ends after sixteen in a row without a
#                    new best, or at 95 % of what the device can do. What the time cuts short goes on
#                    in a later call, see RUNS
#           category one of KernelBench-X (checkout KBX; CATEGORY, Loss if not said): eager,
#                    torch.compile and the rules by `kernelsmith bench`; every task has several
#                    workloads, so give it 200 s or more. BENCH (its tar.xz of an earlier call's
#                    OUT) is gone on with
#           easiest  the easiest tasks of TritonBench T (checkout TB), in the same way
#           Parts of two phases (smoke, autotune, curve) give half of their seconds to the first
#           at most, and to the second what is left.
# Give it a call of its own, in the foreground: machines that are lent go back soon after one, with
# all that is not in OUT.
# settings  EVALUATIONS (3), AGAIN (as many where those bring nothing: 5), BESIDE (4),
#           JUDGES (8; level 1 holds most of the memory by itself: MORE="--levels 2,3" first, then
#           JUDGES=3 MORE="--levels 1", neither beside smoke), JOBS (captures at a time, 14),
#           MODES of torch.compile in autotune (default,max-autotune; max-autotune alone takes half
#           the time, and benchmarks.rules_bench --join has the default of rules-h200.json beside
#           it), STALE steps without a new best that end a task of the curve (16),
#           COMMIT, BACKEND (triton), PYTHON (python3),
#           CAPTURED (captured.tar of an earlier call's OUT, for a machine that has no STATE yet; or
#           usual.zip, made at home, without a GPU, by `python -m benchmarks.rules --backend triton
#           --phase capture --compile none --options default --kernelbench PATH --captured usual.zip`:
#           block sizes are guessed then, and `capture` here makes torch.compile's own files alone.
#           Whatever captured it must be these rules to the letter: capture after the last change),
#           RUNS (runs.tar.xz of an earlier call's OUT: what it was in the middle of goes on),
#           ROOMS (what benchmarks.rules_rooms wrote at home: judges begin what fits beside the others),
#           MORE (options for benchmarks.rules, such as "--levels 1" or "--judges 1")
set -uo pipefail
cd "$(dirname "$0")/.."
: "${KERNELBENCH:?name a checkout of KernelBench}" "${STATE:?name a folder}" "${OUT:?name a folder}"
JUDGES=${JUDGES:-8} JOBS=${JOBS:-14} BESIDE=${BESIDE:-4} STALE=${STALE:-16}
MODES=${MODES:-default,max-autotune}
BACKEND=${BACKEND:-triton} PYTHON=${PYTHON:-python3} CATEGORY=${CATEGORY:-Loss}
COMMIT=${COMMIT:-$(git rev-parse HEAD 2>/dev/null || echo unknown)}
TESTS=${TESTS:-tests/evaluate/cuda/test_backend.py} EVALUATIONS=${EVALUATIONS:-3} AGAIN=${AGAIN:-5}
export PYTHONPATH="src:.${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
mkdir -p "$STATE" "$OUT"

for file in "${CAPTURED:-}" "${RUNS:-}" "${ROOMS:-}" "${BENCH:-}"; do
  [ -z "$file" ] || [ -r "$file" ] || { echo "cannot read $file" >&2; exit 2; }
done

begin_from_results() {  # a fresh machine goes on from what is committed, or was brought along
  for name in rules-h200 rules-autotune-h200 rules-curve-h200; do
    [ -e "$STATE/$name.json" ] || cp "benchmarks/results/$name.json" "$STATE/" 2>/dev/null || true
  done
  cp benchmarks/results/references-h200.json "$STATE/" || exit 2
  if [ -n "${CAPTURED:-}" ] && [ ! -e "$STATE/usual.zip" ]; then
    case $CAPTURED in
      *.tar) tar -C "$STATE" -xf "$CAPTURED" ;;
      *) cp "$CAPTURED" "$STATE/usual.zip" ;;
    esac || exit 2
  fi
  if [ -n "${RUNS:-}" ] && [ ! -e "$STATE/runs" ]; then
    tar -C "$STATE" -xJf "$RUNS" || exit 2
  fi
  [ -z "${BENCH:-}" ] || tar -C "$STATE" -xJf "$BENCH" || exit 2
}

# archive FLAGS FILE NAME...: what of it is there; a file that grows meanwhile is no error
archive() {
  local flags=$1 file=$2 there=() name
  shift 2
  for name in "$@"; do [ ! -e "$STATE/$name" ] || there+=("$name"); done
  [ ${#there[@]} -gt 0 ] || return 0
  tar -C "$STATE" "-c${flags}f" "$STATE/packed.$BASHPID" "${there[@]}" 2>/dev/null
  [ $? -le 1 ] && mv "$STATE/packed.$BASHPID" "$OUT/$file"
}

# At most eight files come back from OUT: four of results, the log, and these.
pack() {
  archive J runs.tar.xz runs
  archive "" captured.tar usual.zip curve.zip
}

keep() {
  cp "$STATE"/rules-*-h200.json "$STATE"/{rules,references}-h200.json "$STATE/log.txt" "$OUT/" 2>/dev/null
}

# rules NAME SECONDS options...
rules() {
  local name=$1 seconds=$2
  shift 2
  # shellcheck disable=SC2086  # MORE is a list of options
  timeout -s INT -k 20 "$((seconds + 30))" "$PYTHON" -m benchmarks.rules \
    --backend "$BACKEND" --kernelbench "$KERNELBENCH" --commit "$COMMIT" --budget-s "$seconds" \
    --effort glance --capture-jobs "$JOBS" --seeds "$STATE/seeds" \
    --out "$STATE/$name.json" "$@" ${MORE:-} 2>&1 | tee -a "$STATE/log.txt"
}

# suite NAME SECONDS SUITE options...
suite() {
  local name=$1 seconds=$2
  shift 2
  timeout -s INT -k 20 "$((seconds + 60))" "$PYTHON" -m kernelsmith bench "$@" \
    --backend "$BACKEND" --proposer rules --entrant compile --entrant eager \
    --preset sweep --steps "$EVALUATIONS" \
    --jobs "${SUITE_JOBS:-3}" --max-seconds "$seconds" --out "$STATE/$name" 2>&1 |
    tee -a "$STATE/log.txt"
  tar -C "$STATE" -cJf "$OUT/$name.tar.xz" "$name"
}

left() { echo "$((seconds - SECONDS + begun))"; }  # of a part's seconds

part() {
  local name=$1 seconds=$2 begun=$SECONDS
  echo "== $name, $seconds s, $(date -u +%H:%M:%S)"
  case $name in
    tests)
      timeout -k 10 "$seconds" "$PYTHON" -m pytest -q -x -m triton -p no:cacheprovider $TESTS 2>&1 |
        tee -a "$STATE/log.txt" ;;
    smoke)
      local four=(--only level2/9 level2/11 level2/17 level3/5 --captured "$STATE/smoke.zip")
      rm -f "$STATE/smoke.json"
      # MORE is about other tasks than these.
      MORE="" rules smoke "$((seconds / 2))" "${four[@]}" --phase capture --options default &&
        MORE="" rules smoke "$(left)" "${four[@]}" --phase judge --judges 4 --evaluations 2 ||
        return
      "$PYTHON" - "$STATE/smoke.json" <<'CHECK'
import json, sys
records = json.load(open(sys.argv[1]))["records"]
said = {key: each.get("said") for key, each in records.items()}
print(f"smoke: {said}")
broken = [each for each in said.values() if each in ("died", "lost", "usage", "no answer")]
sys.exit(1 if broken or len(records) < 2 else 0)
CHECK
      ;;
    contexts)
      timeout -k 10 "$seconds" "$PYTHON" -m benchmarks.gpu_contexts --out "$OUT/contexts.json" 2>&1 |
        tee -a "$STATE/log.txt" ;;
    capture)
      rules rules-h200 "$seconds" --phase capture --options default --captured "$STATE/usual.zip" ;;
    ahead)
      local ask=(--phase capture --options default --captured "$STATE/usual.zip")
      rules rules-h200 "$seconds" "${ask[@]}"
      (JOBS=$BESIDE rules rules-h200 300 "${ask[@]}") >/dev/null 2>&1 & ;;
    judge | both)
      local phase=judge rooms=(${ROOMS:+--rooms "$ROOMS"})
      # What is captured beside comes as it is ready, and not in the order of its rooms.
      [ "$name" = judge ] || { phase="all --capture-jobs $BESIDE"; rooms=(); }
      # shellcheck disable=SC2086  # a list of options
      rules rules-h200 "$seconds" --options default --captured "$STATE/usual.zip" \
        --judges "$JUDGES" --evaluations "$EVALUATIONS" --again "$AGAIN" \
        --reference --referred "$STATE/references-h200.json" ${rooms[@]+"${rooms[@]}"} \
        --limit-s 400 --sources "$STATE/sources" --runs "$STATE/runs/usual" --phase $phase ;;
    references)
      timeout -s INT -k 20 "$((seconds + 30))" "$PYTHON" -m benchmarks.gpu_references \
        --backend "$BACKEND" --kernelbench "$KERNELBENCH" --commit "$COMMIT" --effort glance \
        --budget-s "$seconds" --passed-in "$STATE/rules-h200.json" \
        --out "$STATE/references-h200.json" 2>&1 | tee -a "$STATE/log.txt" ;;
    autotune)
      local both=(--sample --compile "$MODES" --evaluations 0 --limit-s 280)
      rules rules-autotune-h200 "$((seconds / 2))" "${both[@]}" --phase capture
      rules rules-autotune-h200 "$(left)" "${both[@]}" --phase judge --judges "$JUDGES" ;;
    curve)
      rules rules-curve-h200 "$((seconds / 2))" --sample --phase capture --compile none \
        --options default,channels_last,as_given --captured "$STATE/curve.zip"
      rules rules-curve-h200 "$(left)" --sample --phase judge --compile none \
        --captured "$STATE/curve.zip" --judges "$JUDGES" --evaluations 40 --limit-s 560 \
        --growth --stale "$STALE" --roofline 0.95 --runs "$STATE/runs/curve" ${ROOMS:+--rooms "$ROOMS"} ;;
    category)
      : "${KBX:?name a checkout of KernelBench-X}"
      suite "kernelbench-x-${CATEGORY,,}" "$seconds" "kernelbench-x:$KBX" --only "*/$CATEGORY/*" ;;
    easiest)
      : "${TB:?name a checkout of TritonBench}"
      suite tritonbench-t-1 "$seconds" "tritonbench-t:$TB" --level 'difficulty 1' ;;
    *) echo "no part $name; the head of this file lists them" >&2; exit 2 ;;
  esac
}

begin_from_results
# Whoever reads the output waits for all who could still write: these write none.
(while sleep 5; do keep; done) >/dev/null 2>&1 &
(while sleep 30; do pack; done) >/dev/null 2>&1 &
trap 'kill %1 %2 2>/dev/null; keep; pack' EXIT
while [ $# -gt 1 ]; do
  part "$1" "$2" || { [ "$1" = smoke ] && exit 1; }
  shift 2
done
