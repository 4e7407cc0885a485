"""Simulation studies: the paper's models, and what the tests make of them."""
