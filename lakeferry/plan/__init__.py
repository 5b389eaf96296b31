"""`lakeferry plan`: compare synthesised templates with deployed ones, and give reasons, durations and cost of
the changes.
"""
