"""What Lambda calls: parse, build the context, call one function, answer."""
