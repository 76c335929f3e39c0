"""A broker's figures under the names that dashboards know: 5.3.3's own exporter's, rocketmq-exporter's, and ours (mq_*).

All are worked out when they are asked for, from what the broker counts anyway: a send or a pull costs nothing more. What
consumers say of themselves is asked of them in turns (`twisted_mq.broker.clients.consumer_figures`).
"""
