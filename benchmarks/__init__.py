"""Where speed is asserted: measurements of the product itself, each one command."""
