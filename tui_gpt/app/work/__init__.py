"""Work off the event loop: lanes, jobs, questions, and the messages that tell of them."""
