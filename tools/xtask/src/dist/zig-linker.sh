#!/bin/sh
# cargo-zigbuild's linker for an older glibc. zig's cannot export chosen symbols of a program, so vmpirun exports all.
for word; do
    shift
    case $word in
        -Wl,--export-dynamic-symbol=*) word=-Wl,--export-dynamic ;;
    esac
    set -- "$@" "$word"
done
exec @ZIGBUILD@ zig cc -- -g -target x86_64-linux-gnu.@GLIBC@ "$@"
