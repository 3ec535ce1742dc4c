"""Sphinx's configuration of the site: Markdown as it is, and nothing fetched from elsewhere."""

project = "ingestd"
extensions = ["myst_parser"]
root_doc = "index"
html_theme = "furo"
html_title = "ingestd"
html_copy_source = False
html_show_sphinx = False
myst_heading_anchors = 6
myst_links_external_new_tab = True
smartquotes = False
html_use_index = False
