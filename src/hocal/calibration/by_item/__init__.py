"""One mixture per item, given all that is known about it."""
