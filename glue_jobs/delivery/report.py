def html(delivered):
    return "<html></html>"
