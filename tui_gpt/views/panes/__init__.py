"""What each pane shows, one module or small package a pane, as in `app.panes`."""
