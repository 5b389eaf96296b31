"""What developers of Lakeferry run: generators of the reference pages, bills of materials, audit and
benchmarks.
"""
