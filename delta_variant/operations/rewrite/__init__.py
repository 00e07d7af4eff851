"""Code that delete, update, merge and optimize share."""
