"""Add what pyproject.toml cannot say without a warning: the extension, and one wheel for Python 3.11 and later."""

from setuptools import Extension, setup

batches = Extension("rocketmq_twisted_speed.batches", ["rocketmq_twisted_speed/batches.c"], py_limited_api=True)
setup(ext_modules=[batches], options={"bdist_wheel": {"py_limited_api": "cp311"}})
