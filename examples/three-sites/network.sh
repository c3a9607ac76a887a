#!/bin/sh
# Three sites on this machine as network namespaces: `sudo ./network.sh up`, and `down` when done.
#
# Each site is a bridge with IGMP snooping, a gateway (nc-London) and its desks (nc-london-1). Gateways are joined by
# routed links; the log's host (nc-log) is reached by gateways, and through them by desks.
set -e
number() { case $1 in London) echo 1;; Paris) echo 2;; Zurich) echo 3;; esac; }
ns() { ip -n "nc-$@"; }

site() { # its name, then its desks
    name=$1; n=$(number "$name"); shift
    ip netns add "nc-$name-lan"
    ns "$name-lan" link add br0 type bridge mcast_snooping 1 mcast_query_response_interval 20
    host "$name" "$name" "10.81.$n.1" "$n"
    ip netns exec "nc-$name" sysctl -qw net.ipv4.ip_forward=1
    ns "$name" address add "10.99.0.$n/32" dev lo
    k=2
    for desk in "$@"; do
        host "$name" "$desk" "10.81.$n.$k" "$n"
        ns "$desk" route add default via "10.81.$n.1"
        k=$((k + 1))
    done
    ns "$name-lan" link set br0 up type bridge mcast_querier 1
    ns "$name" link add log0 type veth peer name "log$n" netns nc-log
    ns "$name" address add "10.90.$n.1/30" dev log0
    ns log address add "10.90.$n.2/30" dev "log$n"
    ns "$name" link set log0 up
    ns log link set "log$n" up
    ns "$name" route add 10.80.0.1/32 via "10.90.$n.2"
    ns log route add "10.81.$n.0/24" via "10.90.$n.1"
}

host() { # the site, the host, its address, the site's number
    ip netns add "nc-$2"
    ns "$1-lan" link add "p-$(echo "$3" | tr . -)" type veth peer name eth0 netns "nc-$2"
    ns "$1-lan" link set "p-$(echo "$3" | tr . -)" master br0 up
    ns "$2" address add "$3/24" dev eth0
    ns "$2" link set lo up
    ns "$2" link set eth0 up
    ns "$2" route add 224.0.0.0/4 dev eth0
}

link() { # two gateways, and the network between them
    u=$(number "$1"); v=$(number "$2")
    ns "$1" link add "to-$2" type veth peer name "to-$1" netns "nc-$2"
    ns "$1" address add "$3.1/30" dev "to-$2"
    ns "$2" address add "$3.2/30" dev "to-$1"
    ns "$1" link set "to-$2" up
    ns "$2" link set "to-$1" up
    ns "$1" route add "10.99.0.$v/32" via "$3.2" src "10.99.0.$u"
    ns "$2" route add "10.99.0.$u/32" via "$3.1" src "10.99.0.$v"
}

case $1 in
up)
    ip netns add nc-log
    ns log link set lo up
    ns log address add 10.80.0.1/32 dev lo
    site London london-1 london-2
    site Paris paris-1 paris-2
    site Zurich zurich-1
    link London Paris 10.95.12
    link Paris Zurich 10.95.23
    link London Zurich 10.95.13
    ;;
down)
    for each in $(ip netns list | awk '/^nc-(log|London|Paris|Zurich|london|paris|zurich)/ {print $1}'); do
        ip netns del "$each"
    done
    ;;
*) echo "usage: $0 up|down" >&2; exit 2 ;;
esac
