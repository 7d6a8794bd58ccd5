"""What the numbers in the README are made with: `selectmdp bench`."""
