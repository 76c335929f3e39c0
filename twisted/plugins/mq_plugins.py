"""Tells twistd the daemons by name; nothing is imported before one of them is asked for."""

from twisted.application.service import ServiceMaker

namesrv = ServiceMaker("RocketMQ name server", "twisted_mq.namesrv.tap", "A RocketMQ name server", "mqnamesrv")
broker = ServiceMaker("RocketMQ broker", "twisted_mq.broker.tap", "A RocketMQ broker", "mqbroker")
proxy = ServiceMaker("RocketMQ gRPC proxy", "twisted_mq.proxy.tap", "A RocketMQ proxy for gRPC clients", "mqproxy")
