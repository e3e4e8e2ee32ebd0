#!/bin/sh
# Weft: leaf rail2 of Four rails.
# UDP to port 4791 with DSCP 24 takes the uplink of its source port. All other traffic is routed
# as without this, and so is what goes to 10.102.0.0/24.
#   49152-53247 over eth9 to spine-0
#   53248-57343 over eth10 to spine-1
#   57344-61439 over eth11 to spine-2
#   61440-65535 over eth12 to spine-3
# Requires:
#   routes to all racks over all links in table main (ECMP),
#   net.ipv4.fib_multipath_hash_policy=1, rp_filter 0 or 2; rule 900, marks 1 to 4 and
#   tables 7001 to 7004 that nothing else uses
# Load:
#   sh rail2.sh          (as root, beside rail2.nft; may be repeated, as after a restart)
#   sh rail2.sh routes   (after a link came back: the kernel has dropped its route)
# Remove:
#   sh rail2.rollback
# When a link fails:
#   the kernel drops the route in its table, and its ports are hashed among the others;
#   with the sysctl below also where only the carrier is lost. To follow links by itself:
#   ip monitor link | while read -r _; do sh rail2.sh routes; done
# Check:
#   ip -s link show dev PORT: bytes equal on all links above
#   nft list table ip weft: packets that were steered, and that stayed below

over() {
	ip route replace default via "$2" dev "$1" table "$3" ||
		echo "rail2: $1 is down; its source ports are hashed" >&2
	linkdown="/proc/sys/net/ipv4/conf/$1/ignore_routes_with_linkdown"
	[ ! -e "$linkdown" ] || echo 1 > "$linkdown"
}

routes() {
	over eth9 100.64.0.17 7001
	over eth10 100.64.0.19 7002
	over eth11 100.64.0.21 7003
	over eth12 100.64.0.23 7004
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
nft -f "$(dirname "$0")/rail2.nft"
