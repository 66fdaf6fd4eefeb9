"""Measures the whole pipeline on this machine, and writes down what came out."""
