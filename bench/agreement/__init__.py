"""What readers are told of errors, and what making tables agree does to them."""
