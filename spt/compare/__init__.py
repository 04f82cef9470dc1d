"""A grid of methods, seeds and experiments, each cell an ordinary run, and one report over all of them."""
