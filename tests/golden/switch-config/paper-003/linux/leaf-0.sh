#!/bin/sh
# Weft: leaf leaf-0 of The cluster of paper 003.
# UDP to port 4791 with DSCP 26 that comes in from below takes the uplink of its source port.
# What goes to 10.0.0.0/16 stays below. All else is routed as without this.
#   49152-51199 over eth51 to spine-0
#   51200-53247 over eth52 to spine-0
#   53248-55295 over eth53 to spine-0
#   55296-57343 over eth54 to spine-0
#   57344-59391 over eth59 to spine-1
#   59392-61439 over eth60 to spine-1
#   61440-63487 over eth61 to spine-1
#   63488-65535 over eth62 to spine-1
# Needs:
#   routes to all racks over all uplinks in table main (ECMP),
#   net.ipv4.fib_multipath_hash_policy=1, rp_filter 0 or 2; rules 900 to 1200 and tables
#   101 to 108 that nobody else has
# Load:
#   sh leaf-0.sh          (as root; as often as you like)
#   sh leaf-0.sh routes   (after an uplink came back: the kernel has dropped its route)
# Take back:
#   sh leaf-0.rollback
# When an uplink dies:
#   the kernel drops the route in its table, and its ports are hashed among the others;
#   with the sysctl below also where only the carrier is lost. To follow links by itself:
#   ip monitor link | while read -r _; do sh leaf-0.sh routes; done
# Watch:
#   ip -s link show dev UPLINK: bytes equal on all uplinks
#   ip rule; ip route show table 101: empty means hashed

# ip rule takes no range that ends at 65535, so that port is hashed.

uplink() {
	ip route replace default via "$2" dev "$1" table "$3" ||
		echo "leaf-0: $1 is down; its source ports are hashed" >&2
	linkdown="/proc/sys/net/ipv4/conf/$1/ignore_routes_with_linkdown"
	[ ! -e "$linkdown" ] || echo 1 > "$linkdown"
}

routes() {
	uplink eth51 100.98.0.10 101
	uplink eth52 100.98.0.14 102
	uplink eth53 100.98.0.18 103
	uplink eth54 100.98.0.22 104
	uplink eth59 100.98.0.42 105
	uplink eth60 100.98.0.46 106
	uplink eth61 100.98.0.50 107
	uplink eth62 100.98.0.54 108
}

forget() {
	for pref in 900 1000 1001 1100 1200; do
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
	echo "leaf-0: this ip has no DSCP in rules; steering by ports alone (nftables can)" >&2
fi

forget
routes
set -e
ip rule add pref 900 to 10.0.0.0/16 lookup main
steer() {
	# Nothing where there is no DSCP to match.
	# shellcheck disable=SC2086
	ip rule add pref 1000 iif "$1" ipproto udp dport 4791 $dscp goto 1100
}
steer eth1
steer eth2
steer eth3
steer eth4
steer eth5
steer eth6
steer eth7
steer eth8
ip rule add pref 1001 goto 1200
ip rule add pref 1100 ipproto udp sport 49152-51199 lookup 101
ip rule add pref 1100 ipproto udp sport 51200-53247 lookup 102
ip rule add pref 1100 ipproto udp sport 53248-55295 lookup 103
ip rule add pref 1100 ipproto udp sport 55296-57343 lookup 104
ip rule add pref 1100 ipproto udp sport 57344-59391 lookup 105
ip rule add pref 1100 ipproto udp sport 59392-61439 lookup 106
ip rule add pref 1100 ipproto udp sport 61440-63487 lookup 107
ip rule add pref 1100 ipproto udp sport 63488-65534 lookup 108
ip rule add pref 1200 nop
