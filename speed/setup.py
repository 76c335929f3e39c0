"""Add what pyproject.toml cannot say without a warning: the extensions, and one wheel for Python 3.11 and later."""

from setuptools import Extension, setup

extensions = [
    Extension(f"rocketmq_twisted_speed.{name}", [f"rocketmq_twisted_speed/{name}.c"], py_limited_api=True)
    for name in ("batches", "records")
]
setup(ext_modules=extensions, options={"bdist_wheel": {"py_limited_api": "cp311"}})
