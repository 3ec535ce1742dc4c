"""Files of a table written again for other reasons than levels: moves, rescales, sorts, repairs."""
