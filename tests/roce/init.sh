#!/bin/sh
# The first process of the test's machine: devices, modules, a small fabric; then the test.
export PATH=/bin:/sbin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mkdir -p /dev/shm
mount -t tmpfs none /tmp
mount -t tmpfs none /run
mkdir -p /run/netns
read up rest </proc/uptime
echo "guest: up after $up s"
for module in /modules/*.ko; do
	insmod "$module" || echo "guest: insmod $module failed"
done
sh /fabric.sh
sh /test.sh
read up rest </proc/uptime
echo "guest: ends after $up s"
poweroff -f
