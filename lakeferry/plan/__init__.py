"""What a deployment would change: synthesised templates against deployed ones, by resource and with reasons, time and cost."""
