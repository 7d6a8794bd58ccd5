"""Pages that a person wants to read: one HTML file each, which needs nothing beside it."""
