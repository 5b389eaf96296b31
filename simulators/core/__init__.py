"""What all simulators share: servers, controls, time, faults on the wire, processes."""
