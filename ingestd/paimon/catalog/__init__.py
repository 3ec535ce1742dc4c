"""Catalogs (metastores), one module each."""
