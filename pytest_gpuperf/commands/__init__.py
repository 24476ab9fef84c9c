"""The rooms behind the ``gpuperf`` command: one module per subcommand, and what they share."""
