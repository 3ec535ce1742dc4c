"""Where the messages of each JSON format have what makes a change."""
