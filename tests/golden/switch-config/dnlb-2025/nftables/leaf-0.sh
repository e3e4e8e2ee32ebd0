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
#   net.ipv4.fib_multipath_hash_policy=1, rp_filter 0 or 2; rule 900, marks 1 to 8 and
#   tables 7001 to 7008 that nothing else uses
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
	over eth51 100.98.0.10 7001
	over eth52 100.98.0.14 7002
	over eth53 100.98.0.18 7003
	over eth54 100.98.0.22 7004
	over eth59 100.98.0.42 7005
	over eth60 100.98.0.46 7006
	over eth61 100.98.0.50 7007
	over eth62 100.98.0.54 7008
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
ip rule add pref 900 fwmark 7 lookup 7007
ip rule add pref 900 fwmark 8 lookup 7008
nft -f "$(dirname "$0")/leaf-0.nft"
