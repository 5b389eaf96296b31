"""Infrastructure: one file a stack; `constructs/` is what several stacks use, `assets` decides what ships."""
