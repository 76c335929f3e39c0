"""Publishes a server's metrics for Prometheus, and its health. Loaded only with metricsExporterType=PROM."""
