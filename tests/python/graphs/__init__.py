"""Tests of bascule.Graph, and of launches onto streams that another library captures."""
