"""What opens over the main screen: fields, lists, pages of text."""
