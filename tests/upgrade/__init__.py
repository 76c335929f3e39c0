"""Stores and configurations of released versions, which later ones start on."""
