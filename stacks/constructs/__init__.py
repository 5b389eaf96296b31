"""What several stacks use."""
