#!/bin/sh
# What runs in the test's machine.
# Not the shell's own, which knows little.
ip() { /bin/ip "$@"; }
rdma link
ip -n leaf1 rule; ip -n leaf1 route show table all
ping -c 1 -W 2 -I 10.0.1.2 10.0.2.2
cat /sys/class/infiniband/rxe_h1/ports/1/gids/0 /sys/class/infiniband/rxe_h1/ports/1/gids/1
timeout 20 ibv_rc_pingpong -d rxe_h1 -g 1 -n 100 >/tmp/server &
sleep 1
timeout 20 ibv_rc_pingpong -d rxe_h2 -g 1 -n 100 127.0.0.1
ip -n leaf1 -s link
