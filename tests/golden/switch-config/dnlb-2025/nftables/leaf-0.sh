#!/bin/sh
# Weft: leaf leaf-0 of The cluster of DNLB (2025).
# UDP to port 4791 with DSCP 26 takes the uplink of its source port. All other traffic is routed
# as without this, and so is what goes to 10.0.0.0/16.
#   49152-51199 over eth51 to spine-0
#   51200-53247 over eth52 to spine-0
#   53248-55295 over eth53 to spine-0
#   55296-57343 over eth54 to spine-0
#   57344-59391 over eth59 to spine-1
#   59392-61439 over eth60 to spine-1
#   61440-63487 over eth61 to spine-1
#   63488-65535 over eth62 to spine-1
# Requires:
#   routes to all racks over all links in table main (ECMP),
#   net.ipv4.fib_multipath_hash_policy=1, rp_filter 0 or 2; rule 1000, marks 1 to 8 and
#   tables 1001 to 1008 that nothing else uses
# Load:
#   sh leaf-0.sh          (as root, beside leaf-0.nft; may be repeated, as after a restart)
#   sh leaf-0.sh routes   (after a link came back: the kernel has dropped its route)
# Remove:
#   sh leaf-0.rollback
# When a link fails:
#   the kernel drops the route in its table, and its ports are hashed among the others;
#   with the sysctl below also where only the carrier is lost. To follow links by itself:
#   ip monitor link | while read -r _; do sh leaf-0.sh routes; done
# Check:
#   ip -s link show dev PORT: bytes equal on all links above
#   nft list table ip weft: packets that were steered, and that stayed below

over() {
	ip route replace default via "$2" dev "$1" table "$3" ||
		echo "leaf-0: $1 is down; its source ports are hashed" >&2
	linkdown="/proc/sys/net/ipv4/conf/$1/ignore_routes_with_linkdown"
	[ ! -e "$linkdown" ] || echo 1 > "$linkdown"
}

routes() {
	over eth51 100.98.0.10 1001
	over eth52 100.98.0.14 1002
	over eth53 100.98.0.18 1003
	over eth54 100.98.0.22 1004
	over eth59 100.98.0.42 1005
	over eth60 100.98.0.46 1006
	over eth61 100.98.0.50 1007
	over eth62 100.98.0.54 1008
}

if [ "$1" = routes ]; then
	routes
	exit
fi

while ip rule del pref 1000 2>/dev/null; do :; done
routes
set -e
ip rule add pref 1000 fwmark 1 lookup 1001
ip rule add pref 1000 fwmark 2 lookup 1002
ip rule add pref 1000 fwmark 3 lookup 1003
ip rule add pref 1000 fwmark 4 lookup 1004
ip rule add pref 1000 fwmark 5 lookup 1005
ip rule add pref 1000 fwmark 6 lookup 1006
ip rule add pref 1000 fwmark 7 lookup 1007
ip rule add pref 1000 fwmark 8 lookup 1008
nft -f "$(dirname "$0")/leaf-0.nft"
