"""What an account is made of, one module each: how it is made, changed, dropped and shown."""
