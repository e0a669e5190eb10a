"""One mixture per cell from histograms of labels, which an engine can count."""
