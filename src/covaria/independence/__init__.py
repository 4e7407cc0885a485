"""One question: is x independent of y, given others? A test of it, and adapters for it."""
