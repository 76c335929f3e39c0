"""Figures of a server for Prometheus, and whether it is well. Loaded where metricsExporterType=PROM alone."""
