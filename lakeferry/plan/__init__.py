"""Plans a deployment: compares synthesised templates with deployed ones, with reasons, durations and cost."""
