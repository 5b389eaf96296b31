"""The functions' entry points: read the environment, create clients, call one function, return the answer."""
