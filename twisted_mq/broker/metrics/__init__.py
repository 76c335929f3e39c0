"""Publishes a broker's metrics under known names: those of 5.3.3's own exporter, of rocketmq-exporter, and ours (mq_*).

All are computed when they are asked for, from what the broker counts anyway: a send or a pull costs nothing more.
Consumers are asked for their own metrics in turns (`twisted_mq.broker.clients.consumer_figures`).
"""
