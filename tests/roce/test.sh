#!/bin/sh
# What runs in the test's machine. `run.py` judges by what it prints.
# Not the shell's own, which knows little.
ip() { /bin/ip "$@"; }

# capture: begins to count packets that come to the leaves; captured NAME ends it.
capture() {
	rm -f /tmp/stop
	for leaf in leaf1 leaf2; do
		ip netns exec $leaf roce_capture /tmp/stop 100 >/tmp/$leaf &
	done
	sleep 1
}
captured() {
	touch /tmp/stop
	wait
	for leaf in leaf1 leaf2; do
		sed "s/^packets/packets $1 $leaf/" /tmp/$leaf
	done
}

echo "== pingpong"
ibv_rc_pingpong -d rxe_h1 -g 1 -n 100 >/tmp/server &
sleep 1
timeout 20 ibv_rc_pingpong -d rxe_h2 -g 1 -n 100 127.0.0.1

echo "== pairs"
capture
timeout 60 roce_pairs 10.0.1.2 10.0.2.2 1000000 49152 49999 53248 60000 65534
captured pairs

echo "== channel"
capture
timeout 60 roce_channel 10.0.1.2 10.0.2.2 4 8 3000001
captured channel
