"""What developers of Lakeferry run: generators of the reference pages, bills of materials, audit,
check of the templates, and benchmarks.
"""
