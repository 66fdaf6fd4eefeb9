"""Adapters to frameworks for agents; each module imports its own framework, which is to be installed beside.

docs/how-to/frameworks.md has an example of each.
"""
