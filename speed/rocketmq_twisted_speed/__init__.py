"""Compiled forms for rocketmq-twisted: `batches`, `records`. It uses them if it knows their FORM; MQ_COMPILED=off forbids it."""

from __future__ import annotations

import os

FORM = 0 if os.environ.get("MQ_COMPILED") == "off" else 2
"""The number of the functions' arguments and meaning: a change of them takes the next one. 0 is switched off."""
