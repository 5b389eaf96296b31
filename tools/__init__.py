"""What developers run; the product never imports it."""
