"""Where parameters, bytes and work of a shape sit, from the config alone."""
