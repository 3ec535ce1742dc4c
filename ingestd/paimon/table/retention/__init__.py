"""What stays of a table's past and what goes: tags, branches, expiry, orphans."""
