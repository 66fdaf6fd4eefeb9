"""Mnemolog's tests, by distance: unit, contract, integration, acceptance, chaos."""
