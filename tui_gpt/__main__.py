"""`python -m tui_gpt` is the command `tui-gpt`."""

from tui_gpt.cli import main

if __name__ == "__main__":
    main()
