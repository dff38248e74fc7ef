#!/bin/busybox sh
# The first program of the guest of `cargo xtask guest`: the host's files, then the job, then the end.
export PATH=/bin:/sbin
/bin/busybox --install -s /bin

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in $(cat /job/modules); do modprobe "$module" || echo "modprobe $module failed"; done

# The host's files below, what the guest writes above: everything can be written to, nothing arrives at the host.
mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=512000 host /host
mount -t tmpfs over /over
mkdir /over/upper /over/work
mount -t overlay -o lowerdir=/host,upperdir=/over/upper,workdir=/over/work overlay /root

# All modules, here (the kernel's own calls of modprobe stay in this root) and for the job.
modules="/host$(cat /job/tree)/lib/modules"
mkdir -p /root/lib/modules
for place in /lib/modules /root/lib/modules; do mount -o bind "$modules" "$place"; done
for tool in modprobe lsmod rmmod; do [ -e "/root/sbin/$tool" ] || cp /bin/busybox "/root/sbin/$tool"; done

mount -t proc proc /root/proc
mount -t sysfs sysfs /root/sys
mount -t devtmpfs dev /root/dev
mkdir -p /dev/pts /dev/shm /dev/net
mount -t devpts -o ptmxmode=666 devpts /root/dev/pts
for place in dev/shm run tmp var/tmp; do
    mkdir -p "/root/$place"
    mount -t tmpfs -o mode=1777 tmpfs "/root/$place"
done
# What udev would make: such a node loads its module when it is opened.
mknod /dev/net/tun c 10 200
mknod /dev/vhost-net c 10 238
ln -s /proc/self/fd /dev/fd
for number in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${number%:*}" "/dev/${number#*:}"; done
ip link set lo up

# The ports of ours, by their numbers; the device's own number depends on the machine.
out=$(echo /dev/vport*p1)
end=$(echo /dev/vport*p2)
set --
while IFS= read -r -d "" word; do set -- "$@" "$word"; done < /job/words

# A pipe between the job and the port: programs that open /dev/stdout once more could not open the port twice.
mkfifo /out
cat /out > "$out" &
drain=$!
read -r begun _ < /proc/uptime
(
    # Moved over the root and not only entered: in a mere chroot nobody may make user namespaces.
    cd /root && mount -o move . / && exec chroot . /usr/bin/env -i "$@"
) < /dev/null > /out 2>&1
status=$?
read -r ended _ < /proc/uptime

# What the job left behind holds the pipe.
for process in /proc/[0-9]*; do
    process=${process#/proc/}
    [ "$process" = $$ ] || [ "$process" = "$drain" ] || kill -9 "$process"
done 2> /dev/null
wait "$drain"
echo "exit $status $begun $ended" > "$end"
poweroff -f
