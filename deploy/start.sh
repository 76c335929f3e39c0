#!/bin/sh
# Starts mqnamesrv or mqbroker with its file in /etc/rocketmq; further arguments go to the server (--set KEY=VALUE ...). -n ADDR
# and -c FILE are as Apache's scripts take them. NAMESRV_ADDR is as in Apache's image: the name servers of a broker, separated by
# semicolons. METRICS_PORT is the port of /metrics, /health and /ready. Settings of a Java virtual machine have no effect.
set -eu
server=$1
shift
case $server in
sh) [ "${1:-}" = mqnamesrv ] || [ "${1:-}" = mqbroker ] && { server=$1; shift; } ;;
esac
case $server in
mqnamesrv) file=/etc/rocketmq/namesrv.conf ;;
mqbroker) file=/etc/rocketmq/broker.conf ;;
*) exec "$server" "$@" ;;
esac
servers=${NAMESRV_ADDR:-}
[ "$server" = mqbroker ] || servers=
while [ $# -gt 1 ]; do
  case $1 in
  -c) file=$2 ;;
  -n) servers=$2 ;;
  *) break ;;
  esac
  shift 2
done
for name in JAVA_OPT JAVA_OPT_EXT MAX_HEAP_SIZE HEAP_NEWSIZE; do
  eval "value=\${$name:-}"
  [ -z "$value" ] || echo "$name has no effect: there is no virtual machine" >&2
done
exec twistd --nodaemon --pidfile= "$server" --config "$file" ${servers:+--namesrv "$servers"} \
  ${METRICS_PORT:+--set "metricsPromExporterPort=$METRICS_PORT"} "$@"
