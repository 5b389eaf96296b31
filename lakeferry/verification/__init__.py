"""What must hold of a deployment: checks of real accounts, and what a rehearsal shares with them."""
