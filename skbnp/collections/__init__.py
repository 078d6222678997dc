"""Tables cut into cells of rows: in one memory, in files or on the workers of a cluster."""
