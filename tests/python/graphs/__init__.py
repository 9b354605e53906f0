"""bascule.Graph, and launches onto streams that somebody else captures."""
