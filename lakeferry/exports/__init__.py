"""Exports of a deployed stage: start their Glue jobs, watch the runs, and list their windows."""
