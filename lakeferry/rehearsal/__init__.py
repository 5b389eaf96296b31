"""The rehearsal: a real deployment into the embedded AWS and the simulators of both vendors, checked, then
destroyed.
"""
