"""Files become visible: conflicts, manifests, and one snapshot."""
