#!/bin/sh
# zig as Rust's linker for an older glibc. zig brings crt files, libc and a linker of its own, so what rustc says about
# those is left out, as cargo-zigbuild does.
for word; do
    shift
    case $word in
        -fuse-ld=*|-B*/gcc-ld|-Wl,--fix-cortex-a53-843419) ;;
        -lgcc_s) set -- "$@" -lunwind ;;
        -l*|*) set -- "$@" "$word" ;;
    esac
done
exec @ZIG@ -target x86_64-linux-gnu.@GLIBC@ "$@"
