"""The dress rehearsal: a real deployment into the embedded AWS and the vendors' simulators, from empty to nothing left."""
