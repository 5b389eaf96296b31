"""Monitoring of a deployment: how fresh its tables are at each hop, which exports are late, how old its keys are."""
