#!/bin/sh
# Weft: leaf leaf-1 of sockets.
# TCP to ports 7000-7015 with DSCP 26 takes the uplink of its source port. All other traffic is routed
# as without this, and so is what goes to 10.1.0.0/16.
#   49152-54612 over eth3 to spine-0
#   54613-60073 over eth4 to spine-1
#   60074-65534 over eth5 to spine-2
#   65535-65535 hashed: this is left over
# Requires:
#   routes to all racks over all links in table main (ECMP),
#   net.ipv4.fib_multipath_hash_policy=1, rp_filter 0 or 2; rules 900 to 940 and tables
#   7001 to 7003 that nothing else uses
# Load:
#   sh leaf-1.sh          (as root; may be repeated, as after a restart)
#   sh leaf-1.sh routes   (after a link came back: the kernel has dropped its route)
# Remove:
#   sh leaf-1.rollback
# When a link fails:
#   the kernel drops the route in its table, and its ports are hashed among the others;
#   with the sysctl below also where only the carrier is lost. To follow links by itself:
#   ip monitor link | while read -r _; do sh leaf-1.sh routes; done
# Check:
#   ip -s link show dev PORT: bytes equal on all links above
#   ip rule; ip route show table 7001: empty means hashed

# ip rule takes no range that ends at 65535, so that port is hashed.

over() {
	ip route replace default via "$2" dev "$1" table "$3" ||
		echo "leaf-1: $1 is down; its source ports are hashed" >&2
	linkdown="/proc/sys/net/ipv4/conf/$1/ignore_routes_with_linkdown"
	[ ! -e "$linkdown" ] || echo 1 > "$linkdown"
}

routes() {
	over eth3 100.64.0.7 7001
	over eth4 100.64.0.9 7002
	over eth5 100.64.0.11 7003
}

forget() {
	for pref in 900 901 910 920 930 940; do
		while ip rule del pref "$pref" 2>/dev/null; do :; done
	done
}

if [ "$1" = routes ]; then
	routes
	exit
fi

# Rules match a DSCP from Linux 6.12 and iproute2 6.13 on.
dscp="dscp 26"
if ! ip rule help 2>&1 | grep -q ' dscp '; then
	dscp=
	echo "leaf-1: this ip has no DSCP in rules; steering by ports alone (nftables can)" >&2
fi

forget
routes
set -e
steer() {
	# Nothing where there is no DSCP to match.
	# shellcheck disable=SC2086
	ip rule add pref 900 iif "$1" ipproto tcp dport 7000-7015 $dscp goto 910
}
steer eth1
steer eth2
ip rule add pref 901 goto 940
ip rule add pref 910 nop
ip rule add pref 920 to 10.1.0.0/16 lookup main
ip rule add pref 930 ipproto tcp sport 49152-54612 lookup 7001
ip rule add pref 930 ipproto tcp sport 54613-60073 lookup 7002
ip rule add pref 930 ipproto tcp sport 60074-65534 lookup 7003
ip rule add pref 940 nop
