"""The diff pane: alignment, highlighting, and the widget that scrolls them."""
