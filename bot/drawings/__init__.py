"""What people want drawn of the code, the maps that answer it, and the drawing as a message."""
