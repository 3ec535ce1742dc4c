"""Files of a table written anew for other reasons than levels: moves, rescales, sorts, repairs."""
