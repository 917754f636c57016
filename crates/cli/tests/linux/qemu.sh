#!/bin/sh
# Runs a program for arm64 under qemu-user, with the files that `kvrm run` would
# give it: Debian's root under an overlay in memory, /work and /programs from
# the host, an empty /tmp. Processes that it starts run under QEMU as well.
# Nothing outside the namespaces changes, and no root rights are needed:
#
#   unshare --map-root-user --mount sh qemu.sh \
#       ROOT SCRATCH WORK PROGRAMS DIRECTORY [NAME=VALUE...] PROGRAM [ARGUMENT...]
#
# This needs Linux 6.7, where user namespaces have a binfmt_misc of their own.
set -eu
root=$1 scratch=$2 work=$3 programs=$4 directory=$5
shift 5
ulimit -c 0
umask 022

# An ELF header of AArch64; F opens the interpreter now, before the chroot, and P
# keeps the program's own name for itself.
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
qemu=$(command -v qemu-aarch64-static)
printf '%s' ":aarch64:M::$magic:$mask:$qemu:FP" >/proc/sys/fs/binfmt_misc/register

mount -t tmpfs tmpfs "$scratch"
cd "$scratch"
mkdir upper overlay root
mount -t overlay overlay -o "lowerdir=$root,upperdir=upper,workdir=overlay" root
mount --rbind /proc root/proc
# Root could remove the host's devices.
mount -t tmpfs -o mode=755 tmpfs root/dev
for device in null zero full random urandom tty; do
    touch "root/dev/$device"
    mount --bind "/dev/$device" "root/dev/$device"
done
ln -s /proc/self/fd root/dev/fd
for stream in 0:stdin 1:stdout 2:stderr; do
    ln -s "fd/${stream%:*}" "root/dev/${stream#*:}"
done
mkdir root/dev/shm
mount -t tmpfs -o mode=1777 tmpfs root/dev/shm
mount -t tmpfs -o mode=1777 tmpfs root/tmp
mkdir root/work root/programs
mount --bind "$work" root/work
mount --bind "$programs" root/programs
exec chroot root /usr/bin/env -i -C "$directory" \
    PATH=/usr/bin LC_ALL=C HOME=/work TZ=UTC "$@"
