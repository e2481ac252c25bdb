#!/usr/bin/env bash
# A machine of many CPUs: Debian's kernel in qemu, with the test programs in its
# initial file system. Emulated (no KVM is asked for), so nothing here measures
# speed. Two sockets, cores of two threads; Linux 6.1 has restartable sequences,
# no concurrency ids and no private futex hash.
#
#   ci/guest.sh           8 CPUs, then 64
#   ci/guest.sh 8         those alone (what .ci/run does, for want of time)
#   GUEST_ONLY=topology ci/guest.sh 8   only the programs whose line has this word
#
# A kernel that panics, a guest that hangs, and a test that fails are failures.
source "$(dirname "$0")/common.sh"

need_host

sizes=("$@")
if ((${#sizes[@]} == 0)); then
    sizes=(8)
    [[ -n ${CI:-} && -z ${CI_FULL:-} ]] || sizes=(8 64)
fi

# Longest life of a guest, in seconds: booting 64 emulated CPUs takes minutes.
LIFE=${LIFE:-1500}

work=$PWD/target/guest
mkdir -p "$work"

# -- qemu, the kernel, a shell

if ! command -v qemu-system-x86_64 >/dev/null || ! command -v cpio >/dev/null; then
    command -v apt-get >/dev/null || skip "no apt-get to install qemu-system-x86 and cpio"
    { apt-get update && apt-get install -y --no-install-recommends qemu-system-x86 cpio; } ||
        skip "qemu-system-x86 and cpio cannot be installed"
fi

# Unpacked, never installed.
unpack() { # package, and the folder that it becomes
    local package=$1 folder=$work/$2
    [[ -d $folder ]] && return
    (
        rm -rf "$folder.part" && mkdir "$folder.part" && cd "$folder.part" &&
            apt-get download "$package" && dpkg-deb -x ./*.deb . && rm ./*.deb
    ) || return 1
    mv "$folder.part" "$folder"
}

kernel_package() {
    apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-6\.1\..*\)/\1/p' | head -1
}

if [[ ! -d $work/kernel || ! -d $work/busybox ]]; then
    command -v apt-get >/dev/null || skip "no apt-get to fetch a kernel with"
    [[ -n $(kernel_package) ]] || apt-get update || skip "Debian's packages cannot be listed"
    package=$(kernel_package)
    [[ -n $package ]] || skip "no Debian kernel 6.1 can be had (this is not Debian 12)"
    unpack "$package" kernel || skip "$package cannot be fetched"
    unpack busybox-static busybox || skip "busybox-static cannot be fetched"
fi
kernel=$(echo "$work"/kernel/boot/vmlinuz-*)
[[ -f $kernel ]] || { echo "no kernel in $work/kernel" >&2; exit 1; }

# -- the programs

# The path of a package's test program.
program() { # package, options of cargo test
    cargo test -p "$@" --no-run --message-format=json |
        python3 -c '
import json, sys
for line in sys.stdin:
    if line.startswith("{"):
        message = json.loads(line)
        if message.get("executable") and message["profile"]["test"]:
            print(message["executable"])'
}

command -v python3 >/dev/null || skip "python3 is not installed"
cargo build -p bench-suite -p tests

root=$work/root
rm -rf "$root"
mkdir -p "$root"/{bin,proc,sys,dev,tmp,tests}
cp "$work/busybox/bin/busybox" "$root/bin/"
ln -s busybox "$root/bin/sh"

libraries() { # of a program
    ldd "$1" | grep -oE '/[^ ]+' || true
}

# A program at a path of the guest, and the libraries that it needs at theirs.
# Without its debug information: all of this is memory.
put() { # program, where
    mkdir -p "$root$(dirname "$2")"
    if command -v strip >/dev/null; then
        strip -o "$root$2" "$1"
    else
        cp "$1" "$root$2"
    fi
    local library
    for library in $(libraries "$1"); do
        [[ -e $root$library ]] || { mkdir -p "$root$(dirname "$library")" && cp -L "$library" "$root$library"; }
    done
}

put "$(program percpu --lib)" /tests/percpu
put "$(program hp --lib)" /tests/hp
put "$(program hp --test guards)" /tests/hp-guards
put "$(program tests --test guest)" /tests/guest
put "$(program tests --test environment)" /tests/environment
put "$(program bench-suite --test guest)" /tests/bench-guest
# Where the tests look for them.
put "$PWD/target/debug/hp-child" "$PWD/target/debug/hp-child"
put "$PWD/target/debug/hpbench" "$PWD/target/debug/hpbench"

# -- what the guest does

cat >"$root/init" <<'END'
#!/bin/sh
export PATH=/bin HOME=/tmp RUST_BACKTRACE=0
/bin/busybox --install -s /bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
cd /tmp
HP_GUEST=$(sed 's/.*hp_guest=\([0-9:]*\).*/\1/' /proc/cmdline)
export HP_GUEST
echo "GUEST up: $(uname -r), CPUs $(cat /sys/devices/system/cpu/online), $HP_GUEST"
run() { # name, command...
    name=$1
    shift
    begin=$(cut -d. -f1 /proc/uptime)
    timeout 900 "$@" >/tmp/out 2>&1 </dev/null
    code=$?
    took=$(($(cut -d. -f1 /proc/uptime) - begin))
    grep -E '^test |^test result|panicked|left:|right:|^SUMMARY' /tmp/out
    [ "$code" = 0 ] || tail -40 /tmp/out
    echo "GUEST $name: $code ($took s)"
}
. /tests/list
echo "GUEST done"
poweroff -f
END
chmod +x "$root/init"

lists() { # CPUs
    echo "run guest /tests/guest --ignored --test-threads=1"
    echo "run topology env CARGO_BIN_EXE_hpbench=$PWD/target/debug/hpbench /tests/bench-guest --ignored --test-threads=1"
    # The rest takes long where very many CPUs are emulated.
    if (($1 <= 8)); then
        cat <<'END'
run percpu /tests/percpu --skip report_82
run hp /tests/hp
run hp-guards /tests/hp-guards
run environment /tests/environment --skip three_thousand --skip under_valgrind
END
    else
        echo "run smoke $PWD/target/debug/hp-child smoke threads=16 rounds=200"
    fi
}

# -- the guests

status=0
for cpus in "${sizes[@]}"; do
    cores=$((cpus / 4))
    echo "== $cpus CPUs: 2 sockets, $cores cores each, 2 threads each"
    lists "$cpus" | grep -E "^run .*${GUEST_ONLY:-}" >"$root/tests/list"
    expected=$(grep -c '^run ' "$root/tests/list")
    (cd "$root" && find . | cpio --quiet -o -H newc | gzip -1 >"$work/root.gz")
    console=$work/console-$cpus.txt
    # vendor: qemu gives SMT to what says that it is Intel's, and only to that.
    # panic=-1 with -no-reboot: a kernel that panics ends the guest.
    timeout --kill-after=10 "$LIFE" qemu-system-x86_64 -nodefaults -no-reboot -display none \
        -accel tcg,thread=multi -cpu max,vendor=GenuineIntel -m 3G \
        -smp "$cpus,sockets=2,cores=$cores,threads=2" \
        -kernel "$kernel" -initrd "$work/root.gz" \
        -append "console=ttyS0 quiet panic=-1 hp_guest=2:$cores:2" \
        -serial "file:$console" -monitor none </dev/null || echo "qemu: exit $?" >>"$console"
    tr -d '\r' <"$console" | grep -aE '^GUEST|^test |panicked|left:|right:' || true
    if ! grep -aq '^GUEST done' "$console"; then
        echo "the guest of $cpus CPUs did not come to its end; its last words:" >&2
        tail -30 "$console" >&2
        status=1
    elif [[ $(grep -acE '^GUEST [a-z-]+: 0 ' "$console") != "$expected" ]]; then
        echo "something failed in the guest of $cpus CPUs; all of it: $console" >&2
        tr -d '\r' <"$console" | tail -80 >&2
        status=1
    fi
done
exit "$status"
