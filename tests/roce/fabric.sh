#!/bin/sh
# Hosts h1 and h2 (both in the first namespace, for Soft-RoCE of this kernel knows no other), a leaf
# each, and four links between the leaves, which stand for four spines.
#
#   h1 10.0.1.2 -- leaf1 == p1..p4 == leaf2 -- h2 10.0.2.2
#
# Leaves choose the link by the segment of the UDP source port: 4096 ports each from 49152 on.
# Not the shell's own, which knows little.
ip() { /bin/ip "$@"; }
set -e
ip link set lo up
# One emulated processor hands out bursts of packets.
sysctl -q -w net.core.netdev_max_backlog=20000
for leaf in leaf1 leaf2; do
	ip netns add $leaf
	ip -n $leaf link set lo up
	ip netns exec $leaf sysctl -q -w net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
	ip netns exec $leaf sysctl -q -w net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
done

# host NAME LEAF NET: a link, a device, and rules that make even traffic to ourselves take the wire.
host() {
	ip link add $1 mtu 4200 type veth peer mtu 4200 name south netns $2
	ip address add $3.2/24 dev $1
	ip link set $1 up
	ip -n $2 address add $3.1/24 dev south
	ip -n $2 link set south up
	sysctl -q -w net.ipv4.conf.$1.rp_filter=0 net.ipv4.conf.$1.accept_local=1
	rdma link add rxe_$1 type rxe netdev $1
}
sysctl -q -w net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.all.accept_local=1
host h1 leaf1 10.0.1
host h2 leaf2 10.0.2
ip route add default via 10.0.1.1 dev h1 table 11
ip route add default via 10.0.2.1 dev h2 table 12
# What leaves over a device goes to its leaf; what comes from the wire is for us.
ip rule add pref 10 iif h1 lookup local
ip rule add pref 10 iif h2 lookup local
ip rule add pref 20 oif h1 to 10.0.2.0/24 lookup 11
ip rule add pref 20 oif h2 to 10.0.1.0/24 lookup 12
ip rule add pref 30 from 10.0.1.2 to 10.0.2.0/24 lookup 11
ip rule add pref 30 from 10.0.2.2 to 10.0.1.0/24 lookup 12
ip rule add pref 100 lookup local
ip rule del pref 0

for p in 1 2 3 4; do
	ip -n leaf1 link add p$p mtu 4200 type veth peer mtu 4200 name p$p netns leaf2
	ip -n leaf1 address add 10.1.$p.1/24 dev p$p
	ip -n leaf2 address add 10.1.$p.2/24 dev p$p
	ip -n leaf1 link set p$p up
	ip -n leaf2 link set p$p up
done
# leaf LEAF OTHER OTHERS: the rules of a leaf; what no rule catches goes over the first link.
leaf() {
	ip -n $1 route add $2 via 10.1.1.$3
	for p in 1 2 3 4; do
		first=$((49152 + 4096 * (p - 1)))
		last=$((first + 4095))
		[ $p = 4 ] && last=65534
		ip -n $1 route add default via 10.1.$p.$3 dev p$p table 10$p
		for protocol in 17 6; do # UDP, TCP
			ip -n $1 rule add pref 100$p iif south ipproto $protocol sport $first-$last lookup 10$p
		done
	done
}
leaf leaf1 10.0.2.0/24 2
leaf leaf2 10.0.1.0/24 1

# Every neighbour is known before the first burst: only some packets wait for an answer to ARP, and
# Soft-RoCE takes long to get over losses.
for p in 1 2 3 4; do
	ip netns exec leaf1 ping -c 1 -W 2 10.1.$p.2 >/dev/null
done
ip netns exec leaf1 ping -c 1 -W 2 10.0.1.2 >/dev/null
ip netns exec leaf2 ping -c 1 -W 2 10.0.2.2 >/dev/null
ping -c 1 -W 2 -I 10.0.1.2 10.0.2.2 >/dev/null
