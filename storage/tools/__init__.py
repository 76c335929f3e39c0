"""The tools behind `mq store`, for a store's files: filter, verify, repair, rebuild, measure their sizes.

A broker imports none of these modules, because they import numpy at their heads. Only repair and rebuild write, with the
store's lock held, and only if they are called to apply their plan.
"""
