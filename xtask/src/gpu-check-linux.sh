#!/usr/bin/env bash
# Runs Linux programs on an NVIDIA GPU, with CUDA and with Vulkan, and compares what they print with what is expected:
# command lines and programs of the tests that have one process and one thread. Before that, the tests of memory whose pages
# have permissions.
#
#     ./run.sh                           everything
#     ./run.sh memory cuda wgpu lanes    only these; lanes measures programs in many lanes beside QEMU
#
# Everything is unpacked next to it. vulkan/ has a Vulkan loader, which drivers do not include. KVRM_LINUX_ONLY chooses
# programs by parts of their names.
set -uo pipefail
export LC_ALL=C
cd "$(dirname "$0")" || exit 1
for archive in programs.tar.gz root.tar.xz linux-programs.tar.xz; do
    tar -xf "$archive" || exit 1
done

driver=/usr/local/nvidia/lib64
export LD_LIBRARY_PATH="$PWD/vulkan:$driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/tmp}
if [ -z "${VK_DRIVER_FILES:-}" ] && [ -e "$driver/libEGL_nvidia.so.0" ]; then
    export VK_DRIVER_FILES=$PWD/icd.json
    printf '{"file_format_version": "1.0.0", "ICD": {"library_path": "%s", "api_version": "1.3.0"}}\n' \
        "$driver/libEGL_nvidia.so.0" >"$VK_DRIVER_FILES"
fi
export KVRM_COMMAND=$PWD/kvrm KVRM_LINUX_TESTS=$PWD/tests KVRM_LINUX_PROGRAMS=$PWD/linux-programs
export KVRM_DEBIAN_ARM64=$PWD/debian-arm64

# Processes that share a GPU take turns of milliseconds, and one that waits for the host loses its turn.
export KVRM_LINUX_JOBS=${KVRM_LINUX_JOBS:-2}

# step NAME PROGRAM ARGUMENT...: runs tests, and says how long it took.
failed=0
step() {
    local start=$EPOCHREALTIME status=0
    echo "== $1"
    "${@:2}" || status=$?
    awk "BEGIN { printf \"== $1: %s, %.1f s\n\", $status ? \"FAILED\" : \"ok\", $EPOCHREALTIME - $start }"
    [ "$status" = 0 ] || failed=1
}

# compare_lanes ENGINE ARGUMENT...: runs a program with thousands of rows in lanes of an engine, and compares the table with
# the CPU's.
compare_lanes() {
    for engine in cpu "$1"; do
        rm -f "$engine.jsonl"
        "$KVRM_COMMAND" run --engine "$engine" --root "$KVRM_DEBIAN_ARM64" --results "$engine.jsonl" "${@:2}" || return 1
        sed -E 's/"(engine|moved_after)":[^,}]*//g' "$engine.jsonl" | sort >"$engine.table"
    done
    [ "$(wc -l <cpu.table)" = 3000 ] && cmp cpu.table "$1.table"
}

# Rows of which some fail.
many_lanes() {
    seq 1 3000 | awk '{ print $1 % 11 ? $1 " * 3 + " $1 % 7 : $1 " / 0" }' >rows
    compare_lanes "$1" --args-from rows /usr/bin/expr
}

# Programs that make many system calls, most of which lanes serve themselves.
many_calls() {
    local script='io.stdout:setvbuf("no") local n = io.read("n")
        for i = 1, 100 do io.write(n * i, " ") end io.stderr:write(os.time(), "\n")'
    seq 1 3000 >rows
    compare_lanes "$1" --stdin-from rows /usr/bin/lua5.4 -e "$script"
}

programs() {
    step "$1: many lanes" many_lanes "$1"
    step "$1: many calls" many_calls "$1"
    KVRM_LINUX_ENGINE=$1 step "$1: command lines" ./linux command_lines_give --include-ignored
    KVRM_LINUX_ENGINE=$1 step "$1: programs" ./linux programs_give_what_is_expected
}

for part in "${@:-memory}" $([ $# -gt 0 ] || echo cuda wgpu lanes); do
    case $part in
    memory)
        step "memory: cuda" ./engines --include-ignored --test-threads 4 mapped_memory::accesses::cuda mapped_memory::code::cuda \
            mapped_memory::tags::cuda mapped_memory::random::cuda mapped_memory::lanes::cuda mapped_memory::supervisors::cuda
        step "memory: wgpu" ./engines --test-threads 4 mapped_memory::accesses::wgpu mapped_memory::code::wgpu \
            mapped_memory::tags::wgpu mapped_memory::random::wgpu mapped_memory::lanes::wgpu mapped_memory::supervisors::wgpu
        ;;
    cuda | wgpu) programs "$part" ;;
    lanes)
        step "lanes" python3 linux_lanes.py --kvrm "$KVRM_COMMAND" --qemu "$PWD/qemu-aarch64-static" \
            --root "$KVRM_DEBIAN_ARM64" --hash "$PWD/hash" --engines cuda,cpu --rounds 2 --results "${OUT:-.}/lanes.json"
        ;;
    *) echo "what is $part?" && exit 2 ;;
    esac
done
exit $failed
