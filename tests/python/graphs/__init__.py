"""bascule.Graph, and launches onto streams that another library captures."""
