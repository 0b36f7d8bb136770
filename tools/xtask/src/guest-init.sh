#!/busybox sh
# First process of the guest. The host's file system becomes the root, read-only; fresh memory where programs write; one directory of the host's
# is shared for writing: its path is on the kernel's command line (share=), and what to do there in guest/start.
b=/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs dev /dev
while read -r module; do
    $b insmod "/modules/$module" || echo "guest: $module cannot be loaded" >/dev/console
done </modules/order
options=trans=virtio,version=9p2000.L,msize=512000
$b mount -t 9p -o $options,cache=loose,ro root /host || echo "guest: no root" >/dev/console
for directory in tmp run; do
    $b mount -t tmpfs $directory /host/$directory
    $b chmod 1777 /host/$directory
done
for word in $($b cat /proc/cmdline); do
    case $word in share=*) share=${word#share=} ;; esac
done
$b mount -t 9p -o $options,cache=none share "/host$share" || echo "guest: no share" >/dev/console
$b mount -t tmpfs shm /dev/shm 2>/dev/null || { $b mkdir -p /dev/shm /dev/pts && $b mount -t tmpfs shm /dev/shm; }
for directory in dev sys proc; do
    $b mount --move /$directory /host/$directory
done
exec $b switch_root /host /bin/sh "$share/guest/start" >/dev/console 2>&1
