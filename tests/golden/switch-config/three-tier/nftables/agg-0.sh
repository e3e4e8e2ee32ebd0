#!/bin/sh
# Weft: aggregation switch agg-0 of Three tiers.
# UDP to port 4791 with DSCP 26 takes the uplink of its source port. All other traffic is routed
# as without this.
#   49152-51199, 53248-55295 over eth5 to core-0
#   51200-53247, 55296-57343 over eth6 to core-1
#   49152-53247 over eth1 down to leaf-0
#   53248-57343 over eth2 down to leaf-0
#   49152-53247 over eth3 down to leaf-1
#   53248-57343 over eth4 down to leaf-1
# Requires:
#   routes to all racks over all links in table main (ECMP),
#   net.ipv4.fib_multipath_hash_policy=1, rp_filter 0 or 2; rule 900, marks 1 to 6 and
#   tables 7001 to 7006 that nothing else uses
# Load:
#   sh agg-0.sh          (as root, beside agg-0.nft; may be repeated, as after a restart)
#   sh agg-0.sh routes   (after a link came back: the kernel has dropped its route)
# Remove:
#   sh agg-0.rollback
# When a link fails:
#   the kernel drops the route in its table, and its ports are hashed among the others;
#   with the sysctl below also where only the carrier is lost. To follow links by itself:
#   ip monitor link | while read -r _; do sh agg-0.sh routes; done
# Check:
#   ip -s link show dev PORT: bytes equal on all links above
#   nft list table ip weft: packets that were steered, and that stayed below

over() {
	ip route replace default via "$2" dev "$1" table "$3" ||
		echo "agg-0: $1 is down; its source ports are hashed" >&2
	linkdown="/proc/sys/net/ipv4/conf/$1/ignore_routes_with_linkdown"
	[ ! -e "$linkdown" ] || echo 1 > "$linkdown"
}

routes() {
	over eth5 100.64.0.33 7001
	over eth6 100.64.0.35 7002
	over eth1 100.64.0.0 7003
	over eth2 100.64.0.2 7004
	over eth3 100.64.0.8 7005
	over eth4 100.64.0.10 7006
}

if [ "$1" = routes ]; then
	routes
	exit
fi

while ip rule del pref 900 2>/dev/null; do :; done
routes
set -e
ip rule add pref 900 fwmark 1 lookup 7001
ip rule add pref 900 fwmark 2 lookup 7002
ip rule add pref 900 fwmark 3 lookup 7003
ip rule add pref 900 fwmark 4 lookup 7004
ip rule add pref 900 fwmark 5 lookup 7005
ip rule add pref 900 fwmark 6 lookup 7006
nft -f "$(dirname "$0")/agg-0.nft"
