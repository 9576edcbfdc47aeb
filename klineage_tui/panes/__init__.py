"""What each pane shows: pure functions from views to lines at a width."""
