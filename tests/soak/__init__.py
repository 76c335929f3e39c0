"""A soak: 1,000 connections of strangers and a full disk in turns, beside an honest load through Apache's Java client."""
