#!/usr/bin/env bash
# Runs the tests and measurements of `cargo xtask gpu-check` on a computer with an NVIDIA GPU, and prints a table of
# the results beside the expected ones. It needs only the driver.
#
#     ./run.sh                 every step
#     ./run.sh suite bench     only these
#
# Programs are unpacked next to it from programs.tar.gz. Steps whose names start with wgpu_ are for the engine
# `wgpu`, and are skipped if Vulkan finds no GPU. vulkan/ may have a Vulkan loader, which drivers do not include. If
# VK_DRIVER_FILES is set, that driver is used.
#
# $SECONDS_EACH is how long each measurement of bench takes at least (0.3).
#
# $OUT (or ./results) receives results.json, rewritten after each step, and log.txt. `cargo xtask gpu-report FOLDER`
# writes the page from them.
set -uo pipefail
export LC_ALL=C

STEPS="devices suite wgpu_suite conformance verify wgpu_verify sanitizer start bench wgpu_bench cpu qemu figures python modes"
SKIPPED=77
LANES="1 32 128 1024 16384 131072 270336"

out=${OUT:-results}
mkdir -p "$out" && out=$(cd "$out" && pwd) && cd "$(dirname "$0")" || exit 1
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
cores=$(nproc)
each=${SECONDS_EACH:-0.3}
[ ! -e programs.tar.gz ] || tar -xzf programs.tar.gz || exit 1

# Where containers have NVIDIA's driver, which Vulkan does not find by itself.
driver=/usr/local/nvidia/lib64
if [ -d vulkan ]; then
    export LD_LIBRARY_PATH="$PWD/vulkan:$driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
export XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/tmp}
if [ -z "${VK_DRIVER_FILES:-}" ] && [ -e "$driver/libEGL_nvidia.so.0" ]; then
    export VK_DRIVER_FILES="$parts/icd.json"
    printf '{"file_format_version": "1.0.0", "ICD": {"library_path": "%s", "api_version": "1.3.0"}}\n' \
        "$driver/libEGL_nvidia.so.0" >"$VK_DRIVER_FILES"
fi

# seconds_since START: the time now is $EPOCHREALTIME.
seconds_since() { awk "BEGIN { printf \"%.3f\", $EPOCHREALTIME - $1 }"; }

# within SECONDS PROGRAM ARGUMENT...: stops a program that hangs, as GPUs may, and says so.
within() {
    local status=0
    timeout --kill-after 10 "$@" || status=$?
    case $status in
    124 | 137) echo "stopped after $1 s: ${*:2}" ;;
    esac
    return $status
}

# note NAME TEXT: a note about a step for the table.
note() { printf '%s' "$2" >"$parts/note.$1"; }

# note_tests NAME FILE: notes how many tests passed, from their output.
note_tests() {
    note "$1" "$(awk '/^test result:/ { passed += $4; failed += $6 }
        END { printf "%d passed, %d failed", passed, failed }' "$2")"
}

# has_vulkan NAME: true if the engine `wgpu` has a GPU; if not, the step of that name says why it is skipped.
has_vulkan() {
    ./kvrm devices --json | grep -q '"engine": *"wgpu"' && return
    note "$1" "Vulkan finds no GPU"
    return 1
}

step_devices() {
    ./kvrm devices && ./kvrm devices --json >"$parts/devices.json" || return 1
    grep -q '"engine": *"cuda"' "$parts/devices.json" || { echo "no NVIDIA GPU" && return 1; }
}

step_suite() {
    local status=0
    within 60 ./driver --ignored --skip a_kernel_that_fails | tee "$parts/suite" || status=1
    within 60 ./driver --ignored a_kernel_that_fails | tee -a "$parts/suite" || status=1
    within 480 ./engines --ignored cuda --test-threads 8 | tee -a "$parts/suite" || status=1
    # What measures time, or fills the GPU, disturbs others and is disturbed.
    within 240 ./engines --ignored whole_gpu:: --test-threads 1 | tee -a "$parts/suite" || status=1
    note_tests suite "$parts/suite"
    return $status
}

step_wgpu_suite() {
    has_vulkan wgpu_suite || return $SKIPPED
    local status=0
    within 60 ./wgpu_devices device | tee "$parts/suite" || status=1
    within 480 ./engines ::wgpu --include-ignored --test-threads "$cores" | tee -a "$parts/suite" || status=1
    note_tests wgpu_suite "$parts/suite"
    return $status
}

step_conformance() {
    local status=0 part pids=()
    # A kernel of all rows takes minutes to compile, and is compiled again when other shapes turn up.
    for ((part = 0; part < cores; part++)); do
        within 400 ./kvrm-conformance lanes --engine cuda --cases 10000 --part "$part/$cores" --threads 1 --lanes 16384 \
            >"$parts/conformance.$part" 2>&1 &
        pids+=($!)
    done
    for part in "${pids[@]}"; do wait "$part" || status=1; done
    cat "$parts"/conformance.*
    # The sum of lines as in "169 rows, 1690000 cases on cuda, private memory: 0 different (seed 0x1)".
    note conformance "$(awk '/ rows, .* cases on / { cases += $3; different += $9 }
        END { printf "%d cases, %d different", cases, different }' "$parts"/conformance.*)"
    return $status
}

# verify NAME ENGINES: compares thousands of random programs with the CPU, which takes long to translate them, and more
# with the evaluator; all of one seed, so that they need one kernel. For the step NAME.
verify() {
    local status=0
    {
        within 400 ./kvrm verify --random 2048 --engines "cpu,$2" &&
            within 400 ./kvrm verify --random 8192 --engines "eval,$2"
    } | tee "$parts/verify" || status=1
    note "$1" "$(grep 'random program' "$parts/verify" | paste -sd . | sed 's/\./; and /g')"
    return $status
}

step_verify() { verify verify cuda; }

# A kernel of all rows takes Vulkan's compiler minutes: each seed has 40 rows of its own.
step_wgpu_verify() {
    has_vulkan wgpu_verify || return $SKIPPED
    local status=0
    seq 1 32 | within 400 xargs -P "$cores" -I{} sh -c \
        './kvrm verify --random 1024 --rows 40 --seed {} --engines eval,cuda,wgpu || exit 255' |
        tee "$parts/wgpu_verify" || status=1
    note wgpu_verify "$(grep -c 'agree; 1,024 random programs' "$parts/wgpu_verify") times 1,024 random programs agree"
    return $status
}

# memcheck ARGUMENT...: runs kvrm with every access checked.
memcheck() {
    within 60 "$sanitizer" --tool memcheck --error-exitcode 1 ./kvrm exec --engine cuda \
        --base 0x10000 --memory 1M --set x0=lane --lane 0 "$@"
}

step_sanitizer() {
    sanitizer=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer) || return $SKIPPED
    local guest
    for guest in sha256 sort strsearch; do
        memcheck "bin/$guest.bin" --lanes 256 --set x1=1 || return 1
    done
    memcheck bin/collatz.bin --shared --lanes 256 --set x1=1 &&
        memcheck bin/loop_store.bin --shared --lanes 64 --set x1=100 --set x2=8
}

# Measures the time to the first instruction, without and with compiled kernels.
step_start() { ./kvrm bench --engine cuda --only start --json | tee "$parts/start.json"; }

# bench NAME ARGUMENT...: runs kvrm bench; NAME is the name of its results.
bench() {
    local name=$1
    shift
    ./kvrm bench --json "$@" >"$parts/bench.$name.json" && echo "kvrm bench $*"
}

# bench_lanes ENGINE: every guest from one lane to very many, in private memory; some of them in shared memory.
bench_lanes() {
    local lanes status=0
    for lanes in $LANES; do
        bench "$1.private.$lanes" --engine "$1" --lanes $lanes --seconds "$each" || status=1
    done
    for lanes in 1024 131072 270336; do
        bench "$1.shared.$lanes" --engine "$1" --lanes $lanes --seconds "$each" --shared || status=1
    done
    return $status
}

step_bench() { bench_lanes cuda; }

step_wgpu_bench() {
    has_vulkan wgpu_bench || return $SKIPPED
    bench_lanes wgpu
}

step_cpu() { bench cpu --engine cpu --lanes "$cores" --seconds "$each"; }

# Runs one process of QEMU's user mode per core, all with the same program. QEMU does not count instructions; kvrm
# counts those of the same program.
step_qemu() {
    local guest iterations ours instructions result
    while read -r guest iterations; do
        ours=$(./kvrm exec "bin/$guest.bin" --base 0x10000 --memory 1M --max-cycles 1T --json \
            --set x0=1 --set "x1=$iterations") || return 1
        instructions=$(sed -n 's/^ *"cycles": \([0-9]*\).*/\1/p' <<<"$ours" | head -n 1)
        result=$(sed -n 's/^ *"x0": "0x\([0-9a-f]*\)".*/\1/p' <<<"$ours" | head -n 1)
        # The Linux programs print all 16 digits.
        result=$(printf '%16s' "$result" | tr ' ' 0)
        qemu_guest "$guest" "$iterations" "$instructions" "$result" || return 1
    done <peers.txt
}

# qemu_guest GUEST ITERATIONS INSTRUCTIONS RESULT: takes the better of two times.
qemu_guest() {
    local begin time best='' process
    for _ in 1 2; do
        begin=$EPOCHREALTIME
        for ((process = 0; process < cores; process++)); do
            ./qemu-aarch64-static "linux/$1" 1 "$2" </dev/null >"$parts/qemu.$process" &
        done
        wait
        time=$(seconds_since "$begin")
        if [ "$(sort -u "$parts"/qemu.[0-9]*)" != "$4" ]; then
            echo "$1: QEMU does not give $4 in every process"
            return 1
        fi
        best=$(printf '%s\n' "${best:-$time}" "$time" | sort -g | head -n 1)
    done
    echo "$1: $cores processes, $best s"
    printf '{"guest": "%s", "processes": %d, "instructions": %s, "seconds": %s}' \
        "$1" "$cores" "$3" "$best" >"$parts/peer.$1.json"
}

step_figures() { ./gpu_figures --engine cuda | tee "$parts/figures.json"; }

# with_python ARGUMENT...: runs a Python that has the package, from wheels/, and NumPy from the system.
with_python() {
    if [ ! -d packages ]; then
        python3 -m pip install --quiet --no-index --no-deps --target packages wheels/*.whl || return 1
    fi
    PYTHONPATH=$PWD/packages within 400 python3 "$@"
}

python_is_there() {
    python3 -c 'import numpy' 2>/dev/null && return
    note "$1" "no python3 with NumPy"
    return 1
}

# Runs the Python tests for every engine on the engines of GPUs.
step_python() {
    python_is_there python || return $SKIPPED
    local status=0
    with_python -m pytest -q -p no:cacheprovider python/tests -k "cuda or wgpu" \
        --ignore python/tests/test_guide.py --ignore python/tests/test_notebooks.py \
        --ignore python/tests/test_documentation.py --ignore python/tests/test_machines_documentation.py \
        --ignore python/tests/test_benchmarks.py | tee "$parts/python" || status=1
    note python "$(tail -n 1 "$parts/python" | tr -d '=' | sed 's/^ *//; s/ in .*//')"
    return $status
}

# Measures every mode from Python, the cost of calls, and the baselines if PyTorch is installed. Their figures go into
# separate files.
step_modes() {
    python_is_there modes || return $SKIPPED
    local status=0 engine
    with_python benchmarks/all_modes.py --json "$out/modes.json" || status=1
    for engine in cpu cuda $(has_vulkan modes && echo wgpu); do
        with_python benchmarks/python_overheads.py --engine $engine --json >"$out/overheads.$engine.json" || status=1
        cat "$out/overheads.$engine.json"
    done
    if python3 -c 'import torch' 2>/dev/null; then
        with_python benchmarks/pytorch_baselines.py --seconds 1 --json "$out/baselines.json" || status=1
    fi
    return $status
}

# array FILE...: prints a JSON array of the files that exist.
array() {
    local file separator=
    printf '['
    for file in "$@"; do
        [ -s "$file" ] || continue
        printf '%s' "$separator"
        cat "$file"
        separator=,
    done
    printf ']'
}

# value FILE: prints its contents, or null.
value() { if [ -s "$1" ]; then cat "$1"; else printf null; fi; }

write_results() {
    local cpu
    cpu=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1 | tr -d '"\\')
    {
        printf '{"date": "%s", "version": "%s", ' "$(date -u +%F)" "$(cat version.txt)"
        printf '"cpu": "%s", "cores": %d' "$cpu" "$cores"
        printf ',\n"devices": ' && value "$parts/devices.json"
        printf ',\n"steps": ' && array "$parts"/step.*.json
        printf ',\n"bench": ' && array "$parts"/bench.*.json
        printf ',\n"qemu": ' && array "$parts"/peer.*.json
        printf ',\n"start": ' && value "$parts/start.json"
        printf ',\n"figures": ' && value "$parts/figures.json"
        printf '}\n'
    } >"$out/results.json"
}

# run_step NUMBER NAME
run_step() {
    local begin=$EPOCHREALTIME status seconds outcome
    echo "== $2"
    "step_$2" 2>&1 | tee "$parts/log"
    status=${PIPESTATUS[0]}
    { echo "== $2" && cat "$parts/log"; } >>"$out/log.txt"
    seconds=$(seconds_since "$begin")
    case $status in
    0) outcome=passed ;;
    "$SKIPPED") outcome=skipped ;;
    *) outcome=failed ;;
    esac
    echo "== $2 $outcome, $seconds s"
    printf '{"name": "%s", "outcome": "%s", "seconds": %s, "note": "%s"}' \
        "$2" "$outcome" "$seconds" "$(cat "$parts/note.$2" 2>/dev/null)" >"$parts/step.$1.json"
    write_results
}

: >"$out/log.txt"
number=10
for step in ${*:-$STEPS}; do
    case " $STEPS " in
    *" $step "*) run_step $number "$step" ;;
    *)
        echo "error: no step $step; there are: $STEPS" >&2
        exit 2
        ;;
    esac
    number=$((number + 1))
done
./xtask gpu-report --check "$out"
