# Fetches Debian's kernel and a static busybox into the current folder and unpacks what a guest without hardware needs.
# Not the cloud kernel, which has no 9p.
set -e
download() {
    image=$(apt-cache depends linux-image-amd64 | awk '/Depends:/ { print $2; exit }')
    [ -n "$image" ] && apt-get download -q "$image" busybox-static
}
# The lists of a fresh container are empty or old: once more after an update.
if ! download; then
    apt-get update -q
    download
fi
mkdir tree
dpkg-deb --fsys-tarfile busybox-static_*.deb | tar -x -C tree ./bin/busybox
m='./lib/modules/*'
dpkg-deb --fsys-tarfile linux-image-*.deb | tar -x -C tree --wildcards \
    --exclude='*/drivers/net/ethernet' --exclude='*/drivers/net/wireless' \
    './boot/vmlinuz-*' "$m/modules.*" "$m/kernel/arch" "$m/kernel/crypto" "$m/kernel/fs" "$m/kernel/lib" \
    "$m/kernel/net" "$m/kernel/drivers/char" "$m/kernel/drivers/net" "$m/kernel/drivers/vhost" "$m/kernel/drivers/virtio"
rm ./*.deb
tree/bin/busybox depmod -b "$PWD/tree" "$(ls tree/lib/modules)"
