"""What a deployment would change: templates of now against those that are deployed, told by object and by reason."""
