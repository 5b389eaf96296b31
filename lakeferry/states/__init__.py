"""How a deployment is: each table at every hop, keys, exports, and what differs from what was deployed."""
