#!/bin/sh
# Weft: spine spine-1 of The cluster of DNLB (2025).
# UDP to port 4791 with DSCP 26 takes the link of its source port. All other traffic is routed
# as without this.
#   57344-59391 over eth1 down to leaf-0
#   59392-61439 over eth2 down to leaf-0
#   61440-63487 over eth3 down to leaf-0
#   63488-65535 over eth4 down to leaf-0
#   57344-59391 over eth5 down to leaf-1
#   59392-61439 over eth6 down to leaf-1
#   61440-63487 over eth7 down to leaf-1
#   63488-65535 over eth8 down to leaf-1
# Requires:
#   routes to all racks over all links in table main (ECMP),
#   net.ipv4.fib_multipath_hash_policy=1, rp_filter 0 or 2; rules 900 to 940 and tables
#   7001 to 7008 that nothing else uses
# Load:
#   sh spine-1.sh          (as root; may be repeated, as after a restart)
#   sh spine-1.sh routes   (after a link came back: the kernel has dropped its route)
# Remove:
#   sh spine-1.rollback
# When a link fails:
#   the kernel drops the route in its table, and its ports are hashed among the others;
#   with the sysctl below also where only the carrier is lost. To follow links by itself:
#   ip monitor link | while read -r _; do sh spine-1.sh routes; done
# Check:
#   ip -s link show dev PORT: bytes equal on all links above
#   ip rule; ip route show table 7001: empty means hashed

# ip rule takes no range that ends at 65535, so that port is hashed.

over() {
	ip route replace default via "$2" dev "$1" table "$3" ||
		echo "spine-1: $1 is down; its source ports are hashed" >&2
	linkdown="/proc/sys/net/ipv4/conf/$1/ignore_routes_with_linkdown"
	[ ! -e "$linkdown" ] || echo 1 > "$linkdown"
}

routes() {
	over eth1 100.98.0.41 7001
	over eth2 100.98.0.45 7002
	over eth3 100.98.0.49 7003
	over eth4 100.98.0.53 7004
	over eth5 100.98.1.41 7005
	over eth6 100.98.1.45 7006
	over eth7 100.98.1.49 7007
	over eth8 100.98.1.53 7008
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
	echo "spine-1: this ip has no DSCP in rules; steering by ports alone (nftables can)" >&2
fi

forget
routes
set -e
steer() {
	# Nothing where there is no DSCP to match.
	# shellcheck disable=SC2086
	ip rule add pref 900 iif "$1" ipproto udp dport 4791 $dscp goto 910
}
steer eth1
steer eth2
steer eth3
steer eth4
steer eth5
steer eth6
steer eth7
steer eth8
ip rule add pref 901 goto 940
ip rule add pref 910 nop
ip rule add pref 910 to 10.0.0.0/16 ipproto udp sport 57344-59391 lookup 7001
ip rule add pref 910 to 10.0.0.0/16 ipproto udp sport 59392-61439 lookup 7002
ip rule add pref 910 to 10.0.0.0/16 ipproto udp sport 61440-63487 lookup 7003
ip rule add pref 910 to 10.0.0.0/16 ipproto udp sport 63488-65534 lookup 7004
ip rule add pref 910 to 10.1.0.0/16 ipproto udp sport 57344-59391 lookup 7005
ip rule add pref 910 to 10.1.0.0/16 ipproto udp sport 59392-61439 lookup 7006
ip rule add pref 910 to 10.1.0.0/16 ipproto udp sport 61440-63487 lookup 7007
ip rule add pref 910 to 10.1.0.0/16 ipproto udp sport 63488-65534 lookup 7008
ip rule add pref 940 nop
