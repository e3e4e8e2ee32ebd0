#!/bin/sh
# Weft: aggregation switch agg-0 of Three tiers.
# UDP to port 4791 with DSCP 26 that comes in from below takes the uplink of its source port.
# What goes to 10.0.0.0/16, 10.1.0.0/16 stays below. All else is routed as without this.
#   49152-51199, 53248-55295 over eth5 to core-0
#   51200-53247, 55296-57343 over eth6 to core-1
# Needs:
#   routes to all racks over all uplinks in table main (ECMP),
#   net.ipv4.fib_multipath_hash_policy=1, rp_filter 0 or 2; rule 1000, marks 1 to 2 and
#   tables 101 to 102 that nobody else has
# Load:
#   sh agg-0.sh          (as root, beside agg-0.nft; as often as you like)
#   sh agg-0.sh routes   (after an uplink came back: the kernel has dropped its route)
# Take back:
#   sh agg-0.rollback
# When an uplink dies:
#   the kernel drops the route in its table, and its ports are hashed among the others;
#   with the sysctl below also where only the carrier is lost. To follow links by itself:
#   ip monitor link | while read -r _; do sh agg-0.sh routes; done
# Watch:
#   ip -s link show dev UPLINK: bytes equal on all uplinks
#   nft list table ip weft: packets that were steered, and that stayed below

uplink() {
	ip route replace default via "$2" dev "$1" table "$3" ||
		echo "agg-0: $1 is down; its source ports are hashed" >&2
	linkdown="/proc/sys/net/ipv4/conf/$1/ignore_routes_with_linkdown"
	[ ! -e "$linkdown" ] || echo 1 > "$linkdown"
}

routes() {
	uplink eth5 100.64.0.33 101
	uplink eth6 100.64.0.35 102
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
nft -f "$(dirname "$0")/agg-0.nft"
