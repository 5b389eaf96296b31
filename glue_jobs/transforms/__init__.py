"""DataFrame in, DataFrame out. No clock, no environment, no AWS."""
