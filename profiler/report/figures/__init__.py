"""Pictures of runs: one file a figure, each drawn for a given width in CSS pixels."""
