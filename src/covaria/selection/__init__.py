"""Features chosen on many parts of the rows, in pipelines, and refitted."""
