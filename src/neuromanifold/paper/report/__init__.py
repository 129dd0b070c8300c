"""Evidence as one page: `results.json`, the figures, and a self-contained HTML file."""
