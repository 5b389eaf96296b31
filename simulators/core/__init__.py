"""Shared by all simulators: web server, control endpoints, clock, fault injection, processes."""
