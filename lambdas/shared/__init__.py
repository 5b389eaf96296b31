"""What every Lambda needs and no vendor owns: HTTP, time, secrets, errors, log, and the shape of a kind of resource."""
