"""The edge to other people's worlds; the only room that imports them."""
