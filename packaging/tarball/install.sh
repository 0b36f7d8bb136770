#!/bin/sh
# Copy vmpi below a prefix, or take away what an earlier call has copied there. Needs no root for a prefix of your own.
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)
usage() {
    echo "usage: $0 [--prefix DIR] [--uninstall]   (DIR: ${prefix})"
    exit "$1"
}
if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=$HOME/.local; fi
uninstall=
while [ $# -gt 0 ]; do
    case $1 in
        --prefix) [ $# -gt 1 ] || usage 2; prefix=$2; shift ;;
        --prefix=*) prefix=${1#--prefix=} ;;
        --uninstall) uninstall=yes ;;
        -h|--help) usage 0 ;;
        *) usage 2 >&2 ;;
    esac
    shift
done
list=lib/vmpi/installed-files

# Files of an earlier call, then directories that are empty now.
remove() {
    while IFS= read -r file; do rm -f -- "$prefix/$file"; done < "$prefix/$list"
    sed -e 's,/[^/]*$,,' "$prefix/$list" | awk '{ while ($0 != "") { print; if (!sub("/[^/]*$", "")) break } }' |
        sort -ru > "$prefix/$list.dirs"
    dirs=$(cat "$prefix/$list.dirs")
    rm -f -- "$prefix/$list" "$prefix/$list.dirs"
    echo "$dirs" | while IFS= read -r dir; do rmdir -- "$prefix/$dir" 2>/dev/null || :; done
}

if [ "$uninstall" ]; then
    [ -f "$prefix/$list" ] || { echo "$0: vmpi was not installed below $prefix by this script" >&2; exit 1; }
    remove
    echo "vmpi is no longer below $prefix"
    exit
fi
[ ! -f "$prefix/$list" ] || remove
mkdir -p "$prefix"
prefix=$(cd "$prefix" && pwd -P)
[ "$prefix" != "$here" ] || { echo "$0: vmpi is there already; it runs where it was unpacked, too" >&2; exit 1; }
cd "$here"
files=$(find bin include lib share ! -type d | sort)
echo "$files" | while IFS= read -r file; do
    mkdir -p "$prefix/$(dirname "$file")"
    # Under another name first: a program that runs keeps its file.
    cp -P -- "$file" "$prefix/$file.new"
    mv -f -- "$prefix/$file.new" "$prefix/$file"
done
echo "$files" > "$prefix/$list"
echo "vmpi is installed below $prefix; $0 --uninstall --prefix $prefix takes it away"
case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) echo "its programs are in $prefix/bin: export PATH=$prefix/bin:\$PATH" ;;
esac
