#!/bin/sh
# mqnamesrv or mqbroker with its file in /etc/rocketmq; what follows goes to the server (--set KEY=VALUE ...).
# NAMESRV_ADDR is what Apache's image has: the name servers of a broker, parted by semicolons.
set -eu
server=$1
shift
case $server in
mqnamesrv) exec twistd --nodaemon --pidfile= mqnamesrv --config /etc/rocketmq/namesrv.conf "$@" ;;
mqbroker) exec twistd --nodaemon --pidfile= mqbroker --config /etc/rocketmq/broker.conf ${NAMESRV_ADDR:+--namesrv "$NAMESRV_ADDR"} "$@" ;;
*) exec "$server" "$@" ;;
esac
