"""Deploys: looks whether it can go well, tells what happens while CloudFormation works, and says what came of it."""
