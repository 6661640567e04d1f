"""Collectives as plain data: the vocabulary, the builder, and what can be said of a schedule.

Standard library only. Nothing here knows arrays, element types, devices or transports.
"""
