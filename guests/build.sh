#!/bin/sh
# Builds every guest for the bare machine into bin/NAME.bin, and from the same
# source as a Linux program into linux/NAME.  Guests in C are built a second
# time as NAME_O3, with vectors wherever the compiler can use them.  bench/ has
# a set of its own; bench/guests.txt says how each is built.  The same compiler
# gives the same bytes every time.  CROSS names another toolchain.
set -eu
cd "$(dirname "$0")"
export LC_ALL=C

CROSS=${CROSS-aarch64-linux-gnu-}
CFLAGS="-std=gnu11 -Wall -Wextra -mbranch-protection=none -mno-outline-atomics
        -ffreestanding -fno-pic -fno-pie -fno-stack-protector
        -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-ident
        -fno-tree-loop-distribute-patterns -ffunction-sections"
LDFLAGS="-nostdlib -static -no-pie -Wl,--build-id=none -Wl,--gc-sections
         -Wl,-z,noexecstack -Wl,-z,max-page-size=4096
         -Wl,-z,noseparate-code -Wl,--no-warn-rwx-segments"

# The guests whose -O2 build has integer instructions only.
INTEGER_ONLY=" sha256 sort crc32 strsearch matmul mandelbrot
 loop loop_store collatz reset "
INTEGER_FLAGS="-march=armv8-a -mgeneral-regs-only"

# Without contraction, every build rounds as the source says: operations are
# fused only where it calls __builtin_fma.  Square roots are instructions.
VECTOR_FLAGS="-march=armv8-a -ffp-contract=off -fno-math-errno"
AES_FLAGS="$VECTOR_FLAGS -march=armv8-a+crypto"

# All the mnemonics that INTEGER_ONLY builds may use, of base Armv8.0-A.  A
# disassembly with any other, or with a floating point or vector register, fails
# the build.  SVC is for Linux programs only, HLT for bare ones.
ALLOWED=" add adds sub subs neg negs cmp cmn and ands orr orn eor eon bic mvn
 bics adc adcs sbc sbcs ngc tst mov movz movk movn mul madd msub mneg umaddl
 smaddl umsubl smsubl umnegl smnegl umull smull umulh smulh udiv sdiv lsl lsr
 asr ror extr ubfx sbfx ubfiz sbfiz bfi bfxil bfc sxtb sxth sxtw uxtb uxth
 uxtw rev rev16 rev32 rbit clz cls csel cset csetm cinc cinv cneg csinc csinv
 csneg ccmp ccmn adr adrp ldr ldrb ldrh ldrsb ldrsh ldrsw ldp ldpsw ldur ldurb
 ldurh ldursb ldursh ldursw str strb strh stp stur sturb sturh b bl br blr ret
 cbz cbnz tbz tbnz b.eq b.ne b.cs b.cc b.mi b.pl b.hi b.ls b.ge b.lt b.gt b.le
 nop brk "

# check_instructions ELF EXTRA: EXTRA is a mnemonic to allow as well.
check_instructions() {
    "${CROSS}objdump" -d --no-show-raw-insn "$1" 2>/dev/null |
        awk -F '\t' -v allowed="$(echo $ALLOWED) $2" -v file="$1" '
            BEGIN { n = split(allowed, a, " "); for (i = 1; i <= n; i++) ok[a[i]] = 1 }
            /^ +[0-9a-f]+:\t/ {
                sub(/ +$/, "", $2); sub(/\/\/.*|<.*/, "", $3); seen++
                if (!($2 in ok) || $3 ~ /(^|[^0-9a-z#])[vqdshb][0-9]+/) {
                    print file ": not allowed: " $0; bad = 1
                }
            }
            END { if (!seen) print file ": no instructions found"
                  exit bad || !seen }' >&2
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p bin linux bench/bin bench/linux

compile() { # OBJECT SOURCE [FLAG...]
    object=$1
    shift
    "${CROSS}gcc" $CFLAGS -c -o "$tmp/$object" "$@"
}

# build FOLDER NAME SOURCE [FLAG...]: leaves NAME.elf and NAME in $tmp.
build() {
    folder=$1 name=$2 source=$3
    shift 3

    compile runtime.o runtime.c "$@"
    compile bare.o "$source" "$@"
    case $source in
    *.c) start="$tmp/start_bare.o" ;;
    *) start= ;;
    esac
    "${CROSS}gcc" $LDFLAGS -T "$folder/bare.ld" -o "$tmp/$name.elf" \
        $start "$tmp/bare.o" "$tmp/runtime.o"
    "${CROSS}objcopy" -O binary --set-section-flags .data=alloc,load,contents \
        "$tmp/$name.elf" "$folder/bin/$name.bin"

    object=linux.o
    case $folder in
    bench) object=bare.o ;; # the same for both, and takes long to compile
    *) compile linux.o "$source" "$@" -DGUEST_LINUX ;;
    esac
    "${CROSS}gcc" $LDFLAGS -o "$tmp/$name" \
        "$tmp/start_linux.o" "$tmp/linux_main.o" "$tmp/$object" "$tmp/runtime.o"
    "${CROSS}strip" --strip-all -o "$folder/linux/$name" "$tmp/$name"
}

# build_integer_only FOLDER NAME SOURCE
build_integer_only() {
    build "$1" "$2" "$3" -O2 $INTEGER_FLAGS -Isrc
    check_instructions "$tmp/$2.elf" hlt
    check_instructions "$tmp/$2" svc
}

# What these contain is the same in every build.
compile start_bare.o start_bare.S -O2 $INTEGER_FLAGS
compile start_linux.o start_linux.S -O2 $INTEGER_FLAGS
compile linux_main.o linux_main.c -O2 $INTEGER_FLAGS

for source in src/*.c src/*.S; do
    guest=$(basename "${source%.*}")

    case $guest in
    aes) flags=$AES_FLAGS ;;
    *) flags=$VECTOR_FLAGS ;;
    esac
    case $INTEGER_ONLY in
    *[[:space:]]$guest[[:space:]]*) build_integer_only . "$guest" "$source" ;;
    *) build . "$guest" "$source" -O2 $flags ;;
    esac
    case $source in
    *.S) ;; # no compiler has anything to do
    src/mandelbrot.c) ;; # -O3 gives the same program
    *) build . "${guest}_O3" "$source" -O3 $flags ;;
    esac
done

grep -v '^#' bench/guests.txt | while read -r guest how rest; do
    source="bench/src/$guest.c"
    case $how in
    integer) build_integer_only bench "$guest" "$source" ;;
    O2 | O3) build bench "$guest" "$source" "-$how" $VECTOR_FLAGS -Isrc ;;
    *)
        echo "bench/guests.txt: $guest: how is $how built?" >&2
        exit 1
        ;;
    esac
done

wc -c bin/*.bin linux/* bench/bin/*.bin bench/linux/*
