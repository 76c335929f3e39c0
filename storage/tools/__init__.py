"""What `mq store` does with a store's files: filter, verify, repair, rebuild, account for their size.

Nothing here is imported by a broker: numpy stands at the top of these modules. Only repair and rebuild write, with the
store's lock held, and only when they are told to apply their plan.
"""
