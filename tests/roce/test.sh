#!/bin/sh
# What runs in the test's machine. `run.py` judges by what it prints.
cd "$(mktemp -d)" || exit
# Not the shell's own, which knows little.
ip() { /bin/ip "$@"; }

# capture: begins to count packets that come to the leaves; captured NAME ends it.
capture() {
	rm -f stop
	for leaf in leaf1 leaf2; do
		ip netns exec $leaf roce_capture stop 100 >$leaf &
	done
	sleep 1
}
captured() {
	touch stop
	wait
	for leaf in leaf1 leaf2; do
		sed "s/^packets/packets $1 $leaf/" $leaf
	done
}

echo "== pingpong"
ibv_rc_pingpong -d rxe_h1 -g 1 -n 100 >server &
sleep 1
timeout 20 ibv_rc_pingpong -d rxe_h2 -g 1 -n 100 127.0.0.1

echo "== pairs"
capture
timeout 60 roce_pairs 10.0.1.2 10.0.2.2 1000000 49152 49999 53248 60000 65534
captured pairs

echo "== channel"
capture
timeout 60 roce_channel 10.0.1.2 10.0.2.2 4 4 1000001
captured channel

# Both devices as one, at either end: from h1 to h2, and from h2 to h1.
echo "== merged"
ip address add 10.0.1.3/24 dev h1
ip address add 10.0.2.3/24 dev h2
ip rule add pref 30 from 10.0.1.3 to 10.0.2.0/24 lookup 11
ip rule add pref 30 from 10.0.2.3 to 10.0.1.0/24 lookup 12
capture
timeout 60 roce_channel 10.0.1.2,10.0.2.2 10.0.2.3,10.0.1.3 4 4 4000001
captured merged

# ranks STAGE ABI OPERATION ITERATIONS SIZE...: two processes, each with the plugin and a NIC.
export WEFT_CONFIG=/cluster.toml WEFT_BACKEND=roce WEFT_SCHEME=ethereal WEFT_LOG=info
# Nothing dies at first, and a path is not to be blamed for a machine that is busy.
export WEFT_PATH_TIMEOUT=20s WEFT_GIVE_UP=50s
ranks() {
	stage=$1
	shift
	for rank in 1 0; do
		WEFT_HOST=h$((rank + 1)) WEFT_STATS=stats$rank timeout 60 \
			rank $rank 2 127.0.0.1:7000 /lib/libnccl_net_weft.so "$@" >rank$rank 2>&1 &
		pids="$pids $!"
	done
	wait $pids
	pids=
	for rank in 0 1; do
		sed "s/^/$stage rank $rank: /" rank$rank
		echo "stats $stage $rank $(cat stats$rank)"
	done
}

# underway: waits until the first size is through: all paths have been used, and the next size is long.
underway() {
	tries=0
	until grep -qs "^row" rank0 || [ $tries = 300 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
}

echo "== plugin"
capture
ranks plugin v12 all-reduce 2 0 4 100000 4000000
captured plugin

# Memory of GPUs: Soft-RoCE takes no DMA-BUF, and says so; then with a call that maps them.
gpu_memory() {
	WEFT_HOST=h1,h2 timeout 60 gpu_memory /lib/libnccl_net_weft.so 0 1 4 1000001 2>&1
}
echo "== host"
gpu_memory
echo "== gpu"
LD_PRELOAD=/lib/dmabuf.so gpu_memory

echo "== old"
capture
ranks old v8 all-to-all 1 3000000
captured old

export WEFT_PATH_TIMEOUT=4s
echo "== fault"
capture
# Under way the second link loses everything, and no carrier is lost: nobody but the ends can tell.
rm -f rank0
(
	underway
	echo "fault: p2 forwards nothing any more"
	for leaf in leaf1 leaf2; do
		ip netns exec $leaf sysctl -q -w net.ipv4.conf.p2.forwarding=0
	done
) &
pids=$!
ranks fault v11 all-reduce 3 1000000 4000000
captured fault
for leaf in leaf1 leaf2; do
	ip netns exec $leaf sysctl -q -w net.ipv4.conf.p2.forwarding=1
done

echo "== cable"
capture
# The only cable of a host is pulled for three seconds: no path is left, and then all are.
rm -f rank0
(
	underway
	echo "cable: h2 has no carrier"
	ip -n leaf2 link set south down
	sleep 3
	ip -n leaf2 link set south up
	echo "cable: h2 is back"
) &
pids=$!
ranks cable v10 all-reduce 3 1000000 4000000
captured cable

echo "== still"
capture
# A rank stands still for longer than a path may be silent. Its device answers all the while.
rm -f rank0
(
	underway
	stopped=$(ps | awk '/ rank 1 2 / && !/timeout|awk/ { print $1 }')
	echo "still: process $stopped stops"
	kill -STOP $stopped
	sleep 10
	kill -CONT $stopped
	echo "still: it goes on"
) &
pids=$!
ranks still v12 all-reduce 3 1000000 4000000
captured still
