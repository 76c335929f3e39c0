"""Messages as people meet them: values, compressed bodies, delay levels, subscriptions, traces."""
