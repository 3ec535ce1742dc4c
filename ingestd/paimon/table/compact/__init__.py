"""Files of a bucket put together: the plan, the rewrite, what it changes."""
