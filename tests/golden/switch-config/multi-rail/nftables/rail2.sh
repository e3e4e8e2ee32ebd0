#!/bin/sh
# Weft: leaf rail2 of Four rails.
# UDP to port 4791 with DSCP 24 that comes in from below takes the uplink of its source port.
# What goes to 10.102.0.0/24 stays below. All else is routed as without this.
#   49152-53247 over eth9 to spine-0
#   53248-57343 over eth10 to spine-1
#   57344-61439 over eth11 to spine-2
#   61440-65535 over eth12 to spine-3
# Needs:
#   routes to all racks over all uplinks in table main (ECMP),
#   net.ipv4.fib_multipath_hash_policy=1, rp_filter 0 or 2; rule 1000, marks 1 to 4 and
#   tables 101 to 104 that nobody else has
# Load:
#   sh rail2.sh          (as root, beside rail2.nft; as often as you like)
#   sh rail2.sh routes   (after an uplink came back: the kernel has dropped its route)
# Take back:
#   sh rail2.rollback
# When an uplink dies:
#   the kernel drops the route in its table, and its ports are hashed among the others;
#   with the sysctl below also where only the carrier is lost. To follow links by itself:
#   ip monitor link | while read -r _; do sh rail2.sh routes; done
# Watch:
#   ip -s link show dev UPLINK: bytes equal on all uplinks
#   nft list table ip weft: packets that were steered, and that stayed below

uplink() {
	ip route replace default via "$2" dev "$1" table "$3" ||
		echo "rail2: $1 is down; its source ports are hashed" >&2
	linkdown="/proc/sys/net/ipv4/conf/$1/ignore_routes_with_linkdown"
	[ ! -e "$linkdown" ] || echo 1 > "$linkdown"
}

routes() {
	uplink eth9 100.64.0.17 101
	uplink eth10 100.64.0.19 102
	uplink eth11 100.64.0.21 103
	uplink eth12 100.64.0.23 104
}

if [ "$1" = routes ]; then
	routes
	exit
fi

while ip rule del pref 1000 2>/dev/null; do :; done
routes
set -e
ip rule add pref 1000 fwmark 1 lookup 101
ip rule add pref 1000 fwmark 2 lookup 102
ip rule add pref 1000 fwmark 3 lookup 103
ip rule add pref 1000 fwmark 4 lookup 104
nft -f "$(dirname "$0")/rail2.nft"
