"""Pure implementation of the Paimon specification: parse and encode; no I/O, no clock."""
